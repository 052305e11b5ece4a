package turn_test

import "strings"

// shrinkTries bounds the search for a shorter life.
const shrinkTries = 3000

// shrink takes away actions, and then whole features of the definitions, as
// long as the life still breaks a promise in the same words. It is the
// algorithm of A. Zeller, "Yesterday, my program worked" (1999), with ever
// smaller pieces.
func shrink(l life, err *broken) (short life, tries int) {
	short, rule := l, rule(err.what)
	short.without = make([]bool, err.acts+1, mostActions)
	for len(short.without) < mostActions {
		short.without = append(short.without, true)
	}
	breaks := func(l life) bool {
		tries++
		_, again := l.play()
		return again != nil && ruleOf(again) == rule
	}
	for size := mostActions / 2; size > 0 && tries < shrinkTries; {
		if !takeAway(&short, size, breaks) {
			size /= 2
		}
	}
	for f := feature(1); f < allFeatures; f <<= 1 {
		try := short
		if try.plain |= f; breaks(try) {
			short = try
		}
	}
	for tries < shrinkTries && takeAway(&short, 1, breaks) {
	}
	return short, tries
}

// takeAway tries to do without each piece of so many actions, and reports whether
// that went well for any.
func takeAway(l *life, size int, breaks func(life) bool) (any bool) {
	for from := 0; from < len(l.without); from += size {
		try := *l
		try.without = append([]bool(nil), l.without...)
		fresh := false
		for i := from; i < min(from+size, len(try.without)); i++ {
			fresh = fresh || !try.without[i]
			try.without[i] = true
		}
		if fresh && breaks(try) {
			*l, any = try, true
		}
	}
	return any
}

// rule is which promise was broken, without the numbers of this case.
func rule(what string) string {
	_, what, _ = strings.Cut(what, ": ")
	if _, after, ok := strings.Cut(what, ": "); ok && strings.HasPrefix(what, "at event ") {
		what = after
	}
	what, _, _ = strings.Cut(what, "\n")
	return what
}

func ruleOf(b *broken) string { return rule(b.what) }

// left is how many actions there are, at most.
func (l life) left() (n int) {
	for _, gone := range l.without {
		if !gone {
			n++
		}
	}
	return n
}

// story returns the lines that were kept.
func (s *sim) story() string { return strings.Join(s.lines, "\n") + "\n" }
