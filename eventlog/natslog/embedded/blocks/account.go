package blocks

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

var errGaveUp = errors.New("too much of the block looks like records and is none, so the search for the next good one was given up")

// readable returns a subject if it is one.
func readable(subject []byte) string {
	if !plausible(subject) {
		return ""
	}
	return string(subject)
}

// add notes damage.
func (v *verifier) add(d Damage) { v.report.Damage = append(v.report.Damage, d) }

// bad notes bytes that are no record. one reports whether they are one record of known length.
func (v *verifier) bad(b *block, f file, off, end int, one bool, err error) {
	r, _ := split(b.buf[off:])
	if b.budget < 0 {
		err = fmt.Errorf("%w; %w", err, errGaveUp)
	}
	d := Damage{
		File: f.path, Block: b.number, Offset: int64(off), Length: int64(end - off),
		Subject: readable(r.subject), Err: err,
	}
	p := pending{at: len(v.report.Damage)}
	if one && r.kind() != Tombstone && r.number() > v.last {
		p.claim = r.number()
	}
	v.add(d)
	if tombstone := one && r.size == emptySize && p.claim == 0; !tombstone {
		v.pending = append(v.pending, p)
	}
}

var errEmpty = errors.New("the block is empty, which only the newest one may be")

// empty notes a block without records that is not the newest. The server makes none: it
// removes a block with its last message. If no sequence turns out to be missing there, or only
// erased ones, nothing is wrong: a server whose disk is full leaves such a block.
func (v *verifier) empty(f file) {
	v.pending = append(v.pending, pending{at: len(v.report.Damage)})
	v.add(Damage{File: f.path, Block: f.number, Err: errEmpty})
}

// harmless reports whether damage is an empty block that no sequence is missing from but erased ones.
// Where no record follows, the block may have held more than its tombstones name, so that only a
// stream whose first message was refused may end like this.
func (v *verifier) harmless(d Damage, erased []Span) bool {
	switch {
	case !errors.Is(d.Err, errEmpty):
		return false
	case d.Last == 0:
		return true
	case !d.followed && (!v.refused() || v.report.Messages > 0):
		return false
	}
	return len(minus([]Span{{max(d.First, 1), d.Last}}, erased)) == 0
}

// advance moves on to the next message or erased record, of sequence n in a block.
func (v *verifier) advance(n uint64, block uint32) {
	v.settle(n, true)
	if v.first == 0 {
		v.first = n
	}
	if v.low > 0 && n > v.low+1 {
		v.gap(v.low+1, n-1, block)
	}
	v.last, v.low, v.block = n, n, block
}

func (v *verifier) gap(first, last uint64, before uint32) {
	v.report.Gaps = append(v.report.Gaps, Gap{Span: Span{first, last}, After: v.block, Before: before})
}

// settle fills in the sequences of pending damage, now that n is the next one, and notes the gaps
// between them. known is false if n is only assumed.
func (v *verifier) settle(n uint64, known bool) {
	low, open := v.low, false
	for _, p := range v.pending {
		d := &v.report.Damage[p.at]
		d.followed = known
		if p.claim <= low || p.claim >= n {
			open = true
			if n > low+1 {
				d.First, d.Last = low+1, n-1
			}
			if low == 0 && d.Last > 1 {
				d.First = 0
			}
			continue
		}
		if low > 0 && p.claim > low+1 && !open {
			v.gap(low+1, p.claim-1, d.Block)
		}
		d.First, d.Last, low, v.block = p.claim, p.claim, p.claim, d.Block
	}
	if v.pending = v.pending[:0]; open {
		low = 0 // up to n all is accounted for
	}
	v.low = low
}

// unverified notes a file that is not read. What its records say is unknown, so that no
// gap can be recognized at its end.
func (v *verifier) unverified(path, reason string) {
	v.report.Unverified = append(v.report.Unverified, Unverified{path, reason})
	v.settle(v.last+uint64(len(v.pending))+1, false)
	v.low = 0
}

// finish draws the conclusions that need the whole stream.
func (v *verifier) finish() {
	newest := v.newest()
	v.settle(max(v.mark, v.report.Last, v.last+uint64(len(v.pending)))+1, false)
	v.explain()
	for _, u := range v.report.Unverified {
		if u.File == newest.path {
			return
		}
	}
	v.ends(newest)
	v.lost()
}

// newest returns the newest block file, or the one that the server will make.
func (v *verifier) newest() file {
	if n := len(v.files); n > 0 {
		return v.files[n-1]
	}
	return file{number: 1, path: filepath.Join(v.folder, "1"+blockSuffix)}
}

// ends notes that the stream ends below what is known to have been stored.
func (v *verifier) ends(newest file) {
	last := v.report.Last
	for _, d := range v.report.Damage {
		last = max(last, d.Last)
	}
	if last >= v.mark || v.neverUsed(newest) {
		return
	}
	v.add(Damage{
		File: newest.path, Block: newest.number, Offset: newest.size, First: last + 1, Last: v.mark,
		Err: fmt.Errorf("the stream ends at sequence %d, but %d was stored %s", last, v.mark, v.markBy),
	})
}

// neverUsed reports whether the stream has never stored a message, though index.db has a sequence.
func (v *verifier) neverUsed(newest file) bool {
	return v.refused() && len(v.files) == 1 && newest.number == 1 && newest.size == 0
}

// refused reports whether index.db is that of a server which has refused the first message, because its
// disk was full: it keeps sequence 1 of that message and an empty block 1. A stream that has lost
// more, or was emptied, has a later sequence or block.
func (v *verifier) refused() bool {
	x := v.index
	return v.o.Mark == 0 && x != nil && x.messages == 0 && x.last == 1 && x.newest == 1
}

// lost notes that the newest block of index.db is missing, which the server never removes
// but where messages expire. An older one proves nothing: a purge that empties it removes
// it without a trace.
func (v *verifier) lost() {
	if v.index == nil || v.limits.any() || v.newest().number >= v.index.newest {
		return
	}
	v.add(Damage{
		File: filepath.Join(v.folder, fmt.Sprint(v.index.newest, blockSuffix)), Block: v.index.newest,
		Err: errors.New("the block is missing: index.db names it as the newest"),
	})
}

// explain completes what was deleted and the gaps, now that all tombstones are known:
// what they or index.db explain is no gap.
func (v *verifier) explain() {
	erased := normal(slices.Clone(v.report.Deleted))
	v.report.Damage = slices.DeleteFunc(v.report.Damage, func(d Damage) bool { return v.harmless(d, erased) })
	var live, known []Span
	if v.index != nil && v.index.last > 0 {
		live = v.index.live
		known = minus([]Span{{1, v.index.last}}, live)
	}
	if !v.report.Rebuild {
		v.report.Deleted = append(v.report.Deleted, known...)
	}
	v.report.Deleted = normal(v.report.Deleted)
	known = normal(append(known, v.report.Deleted...))
	v.head(live)
	var out []Gap
	for _, g := range v.report.Gaps {
		for _, s := range minus([]Span{g.Span}, known) {
			out = append(out, Gap{s, g.After, g.Before, count(common([]Span{s}, live))})
		}
	}
	v.report.Gaps = out
}

// head notes a gap before the first record if index.db lists messages there that nothing
// else in the report accounts for.
func (v *verifier) head(live []Span) {
	if v.first == 0 || len(live) == 0 || live[0].First >= v.first || len(v.report.Unverified) > 0 {
		return
	}
	if d := v.report.Damage; len(d) > 0 && d[0].First == 0 && d[0].Last > 0 {
		return
	}
	g := Gap{Span: Span{live[0].First, v.first - 1}, Before: v.files[0].number}
	v.report.Gaps = append([]Gap{g}, v.report.Gaps...)
}
