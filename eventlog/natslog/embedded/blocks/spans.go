package blocks

import (
	"fmt"
	"slices"
)

// Span is a range of sequences, both ends included.
type Span struct{ First, Last uint64 }

// String returns the span as "7" or "7 to 9".
func (s Span) String() string {
	if s.First == s.Last {
		return fmt.Sprint(s.First)
	}
	return fmt.Sprintf("%d to %d", s.First, s.Last)
}

// count returns how many sequences the spans hold.
func count(spans []Span) (n uint64) {
	for _, s := range spans {
		n += s.Last - s.First + 1
	}
	return n
}

// Contains reports whether a sequence is in one of the spans, which are sorted as Verify
// returns them.
func Contains(spans []Span, seq uint64) bool {
	_, found := slices.BinarySearchFunc(spans, seq, func(s Span, seq uint64) int {
		switch {
		case s.Last < seq:
			return -1
		case s.First > seq:
			return 1
		}
		return 0
	})
	return found
}

// extend adds a sequence to the spans. It is cheap for sequences that arrive in order.
func extend(spans []Span, seq uint64) []Span {
	if n := len(spans); n > 0 && spans[n-1].First <= seq && seq <= spans[n-1].Last {
		return spans
	} else if n > 0 && seq == spans[n-1].Last+1 {
		spans[n-1].Last = seq
		return spans
	}
	return append(spans, Span{seq, seq})
}

// normal sorts the spans and joins those that touch or overlap.
func normal(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int {
		switch {
		case a.First < b.First:
			return -1
		case a.First > b.First:
			return 1
		}
		return 0
	})
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && (s.First <= out[n-1].Last || s.First == out[n-1].Last+1) {
			out[n-1].Last = max(out[n-1].Last, s.Last)
			continue
		}
		out = append(out, s)
	}
	return out
}

// minus returns the sequences of from that are not in the spans of less. Both are normal.
func minus(from, less []Span) []Span {
	var out []Span
	for _, s := range from {
		i, _ := slices.BinarySearchFunc(less, s.First, func(l Span, seq uint64) int {
			if l.Last < seq {
				return -1
			}
			return 1
		})
		out = append(out, cut(s, less[i:])...)
	}
	return out
}

// cut returns what remains of a span without those of less, which is normal.
func cut(s Span, less []Span) []Span {
	var out []Span
	for _, l := range less {
		if l.First > s.Last {
			break
		}
		if l.First > s.First {
			out = append(out, Span{s.First, l.First - 1})
		}
		if l.Last >= s.Last {
			return out
		}
		s.First = max(s.First, l.Last+1)
	}
	return append(out, s)
}

// common returns the sequences that are in both. Both are normal.
func common(a, b []Span) []Span { return minus(a, minus(a, b)) }
