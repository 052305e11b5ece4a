package actors_test

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors/faulttest"
)

// fault is a mistake that somebody could make in the actor, as a change of one
// place of its source.
type fault struct {
	Name, File string
	Old, New   string
}

// committing is where a frame is appended.
const committing = `m.tail, m.err = eventlog.Commit(ctx, log, entry, stalls(func(err error) { root.Send(self, stalled{f.ID, err}) }))`

// faults are what the simulation must be able to find. Those of the machine
// inside have a table of their own, beside the machine.
var faults = []fault{
	{"take over without a fence", "load.go",
		`case a.tail.Frame != "" && a.tail.Epoch < a.epoch:`, `case a.tail.Frame == "-":`},
	{"write over a conflict", "commit.go",
		committing, committing + `
			var lost *eventlog.ConflictError
			if errors.As(m.err, &lost) {
				entry.Expect = lost.Actual
				f.First, f.Prev, f.PrevDigest, f.Epoch = lost.Actual.Last+1, lost.Actual.Frame, lost.Actual.Digest, lost.Actual.Epoch
				entry.Bytes, _ = messages.EncodeFrame(entry.Agent, f)
				m.tail, m.err = log.Append(ctx, entry)
			}`},
	{"take an unknown outcome for a stored frame", "commit.go",
		committing, `_ = stalls
			if m.tail, m.err = log.Append(ctx, entry); m.err != nil && !errors.As(m.err, new(*eventlog.ConflictError)) {
				m.tail, m.err = entry.Tail(entry.Expect.Seq+1), nil
			}`},
	{"say that it is purged, and leave the log", "purge.go",
		`err := p.rt.log.Purge(ctx, p.agent, at)`, `err := p.rt.log.Purge(ctx, p.agent, at-at)`},
	{"leave the snapshots of a deleted agent", "purge.go",
		`return p.rt.log.RemoveSnapshots(ctx, p.agent)`, `return nil`},
	{"leave the blobs of a deleted agent", "purge.go",
		`return p.rt.log.RemoveBlobs(ctx, p.agent, blobs...)`, `return nil`},
	{"leave what a deposed owner stores of a deleted agent", "snapshot.go",
		`err = rt.log.RemoveSnapshots(ctx, a)`, `err = nil`},
	{"leave what may be stored after an error", "snapshot.go",
		`if rt.withdraw(id, epoch, tail.Seq) {`, `if m.err == nil && rt.withdraw(id, epoch, tail.Seq) {`},
	{"purge while somebody still stores", "purge.go",
		`p.rt.writers.wait(ctx, p.agent)`, `ctx.Err()`},
	{"write the tombstone as an effect", "agent.go",
		`cause = closed.Cause()`, `_ = closed`},
	{"act before the append", "commit.go",
		"	a.busy = true\n", "	a.busy = true\n	a.act()\n"},
	{"answer before the append", "commit.go",
		`	a.flight = flight{frame: f, replies: a.repliesTo(f), sender: sender}`, "	a.flight = flight{frame: f, replies: a.repliesTo(f)}\n	a.answer(sender, answerOf(f))"},
	{"let a deposed owner's work run on", "failing.go",
		"	for _, cancel := range a.running {\n		cancel()\n	}\n", ""},
	{"let work run on that nobody awaits", "effects.go",
		"			cancel()\n			delete(a.running, e)\n", "			_ = cancel\n			delete(a.running, e)\n"},
	{"take a late result of cancelled work", "agent.go",
		`if _, listed := a.running[o.of]; !listed {`, `if a.broken != nil {`},
	{"work on after a takeover as if nothing was lost", "load.go",
		`append(events, a.recovery()...)`, `events`},
	{"forget to go on after an append", "commit.go",
		"	a.act()\n	a.drain()\n", "	a.drain()\n"},
	{"forget to go on after a failed append", "failing.go",
		"a.id.LogAttr(a.epoch), \"error\", err)\n		a.leave(true)\n	}\n	if refusal", "a.id.LogAttr(a.epoch), \"error\", err)\n		a.leave(false)\n	}\n	if refusal"},
	{"keep the state of an append that failed", "failing.go",
		"a.id.LogAttr(a.epoch), \"error\", err)\n		a.leave(true)\n	}\n	if refusal", "a.id.LogAttr(a.epoch), \"error\", err)\n		a.broken = nil\n	}\n	if refusal"},
	{"wait for an event before hooks are asked", "agent.go",
		"	a.act() // hooks may be asked now", "	// hooks may be asked now"},
	{"take what was to be asked again for the first answer", "load.go",
		"	ans := answerOf(f)\n", "	ans := messages.Answer{N: f.Last()}\n"},
	{"forget old ids", "index.go",
		`x.page.add(hashID(id.ID), at)`, `x.page.add(hashID(""), at)`},
	{"take a lost page of ids for one without the id", "lookup.go",
		"			rt.lookUpInLog(ctx, id, hash, m)\n			return\n", "			_ = hash\n			continue\n"},
	{"leave ids out of a snapshot", "index.go",
		`Page: slices.Clip(x.page)}`, `Page: x.page[:0]}`},
	{"begin behind the tail of a snapshot", "load.go",
		`rt.log.ReadFrom(ctx, id, l.tail)`, `rt.log.Read(ctx, id, l.tail.Last+2)`},
	{"leave a snapshot of what is not in the log yet", "commit.go",
		"	a.busy = true\n", "	a.busy = true\n	a.tail.Last = f.Last()\n	a.save(0, snapshotShare, true)\n	a.tail.Last = f.First - 1\n"},
	{"append before the blob is stored", "shelf.go",
		"return s.put(ctx, a, epoch, strings.NewReader(payload))\n", `b := messages.Blob{SHA256: messages.DigestOf([]byte(payload)), Size: int64(len(payload))}
		go func() { _, _ = s.log.PutBlob(context.WithoutCancel(ctx), a, strings.NewReader(payload)) }()
		return &b, nil
`},
	{"keep the text in the history", "spill.go",
		"		if resultSize(r) > limit {\n			if b, err := a.rt.shelf.keep(ctx, a.id, a.epoch, r.Output); err == nil {\n				r.Output, r.Blob = \"\", b\n			}\n		}\n		return r\n	case turn.ToolReconciled:",
		"		if resultSize(r) > limit {\n			if b, err := a.rt.shelf.keep(ctx, a.id, a.epoch, r.Output); err == nil {\n				r.Blob = b\n			}\n		}\n		return r\n	case turn.ToolReconciled:"},
	{"show a model the beginning alone", "shelf.go",
		"head, tail = wholeRunes(head), fromRune(tail)", "head, tail = wholeRunes(head), nil"},
	{"sleep with work to do", "agent.go",
		` || a.state.Open() && (len(a.running) > 0 || !a.def.turn.Unknown) {`, ` {`},
}

// faultActs is within how many acts a fault must be found. Where the order of goroutines
// decides, that differs from run to run: waiting for an event was found after 18,606 to 89,668.
const faultActs = 120_000

// table is the faults as faulttest plants them.
func table() (list []faulttest.Fault) {
	for _, f := range faults {
		list = append(list, faulttest.Fault(f))
	}
	return list
}

func TestFaultsFit(t *testing.T) { faulttest.FaultsFit(t, table()) }

// TestFaults needs a build for each fault: make test-faults.
func TestFaults(t *testing.T) { faulttest.Faults(t, "actors", "acts", table()) }

// TestHunt looks for the first life that breaks a promise.
func TestHunt(t *testing.T) {
	faulttest.Hunting(t)
	acts := 0
	for seed := uint64(0); acts < faultActs; seed++ {
		l := live(t, seed, plan(seed))
		acts += len(l.acts)
		if l.wrong == nil {
			continue
		}
		short := shrink(t, l)
		what, _, _ := strings.Cut(l.wrong[0], "\n")
		faulttest.Found{Seed: seed, Took: acts, Suffice: len(short.acts), What: what}.Tell(t)
		return
	}
}
