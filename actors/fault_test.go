package actors_test

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors/faulttest"
)

// fault is a [faulttest.Fault] of this package.
type fault struct{ Name, Func, Old, New string }

// committing is the statement that appends a frame.
const committing = `tail, err = eventlog.Commit(a.ctx, a.rt.store.Log, entry, appending.tried)`

// faults are mistakes in the actor that the simulation must find. Faults of the state machine
// inside it are in the table of package turn.
var faults = []fault{
	{"take over without a fence", "(*agent).load",
		`a.tail.Frame != "" && a.tail.Epoch < a.epoch`, `a.tail.Frame == "-"`},
	{"write over a conflict", "(*agent).commitFrame",
		committing, committing + `
			var lost *eventlog.ConflictError
			if errors.As(err, &lost) {
				entry.Expect = lost.Actual
				f.First, f.Prev, f.PrevDigest, f.Epoch = lost.Actual.Last+1, lost.Actual.Frame, lost.Actual.Digest, lost.Actual.Epoch
				entry.Bytes, _ = messages.EncodeFrame(entry.Agent, f)
				tail, err = a.rt.store.Append(a.ctx, entry)
			}`},
	{"take an unknown outcome for a stored frame", "(*agent).commitFrame",
		committing, `_ = appending.tried
			if tail, err = a.rt.store.Append(a.ctx, entry); err != nil && !errors.As(err, new(*eventlog.ConflictError)) {
				tail, err = entry.Position(entry.Expect.Seq+1), nil
			}`},
	{"answer a delete and leave the log", "(*agent).purge",
		`a.rt.store.Purge(ctx, a.id, a.newest)`, `a.rt.store.Purge(ctx, a.id, 0)`},
	{"leave the snapshots of a deleted agent", "(*agent).remove",
		`a.rt.store.RemoveSnapshots(a.ctx, a.id, upto.Snapshots)`, `a.ctx.Err()`},
	{"leave the blobs of a deleted agent", "(*agent).remove",
		`a.rt.store.RemoveBlobs(a.ctx, a.id, upto.Blobs)`, `a.ctx.Err()`},
	{"remove while a write is under way", "(*Runtime).extent",
		`rt.writers.wait(ctx, id)`, `ctx.Err()`},
	{"do not repeat the removal after a crash", "(*agent).load",
		`a.removed(l.last.Cause, l.first == del.N)`, `_ = l.first`},
	{"act before the append", "(*agent).commitFrame",
		`tail := a.tail`, `tail := a.tail; a.act()`},
	{"answer before the append", "(*agent).commitFrame",
		`tail := a.tail`, `tail := a.tail; a.answer(sender, projections.AnswerOf(f)); sender = nil`},
	{"let a deposed owner's work run on", "(*agent).stop",
		`a.cease(nil)`, ``},
	{"let work run on that is not awaited", "(*agent).cancelEffects",
		`b.cancel()`, ``},
	{"take a late result of cancelled work", "(*agent).apply",
		`!a.awaits(o.of)`, `a.broken != nil`},
	{"continue after a takeover as if nothing was lost", "(*agent).takeOver",
		`append(events, a.recovery()...)`, `events`},
	{"do not continue after an append", "(*agent).appended",
		`a.act()`, ``},
	{"do not continue after a failed append", "(*agent).notAppended",
		`a.leave(failed)`, `a.leave(left)`},
	{"keep the state of an append that failed", "(*agent).notAppended",
		`a.leave(failed)`, `a.broken = nil`},
	{"answer a repeated command without its first answer", "(*Runtime).firstAnswer",
		`projections.AnswerOf(f)`, `messages.Answer{N: f.Last(), Duplicate: projections.AnswerOf(f).Duplicate}`},
	{"skip an event after a snapshot", "(*Runtime).catchUp",
		`rt.store.Read(ctx, id, eventlog.Behind(l.tail))`, `rt.store.Read(ctx, id, eventlog.From(l.tail.Last+2))`},
	{"leave a snapshot of what is not in the log yet", "(*agent).commitFrame",
		`tail := a.tail`, `tail := a.tail
	a.tail.Last = f.Last()
	a.save(0, snapshotShare)
	a.tail.Last = f.First - 1`},
	{"append before the blob is stored", "(*agent).offloadText",
		`b, err := a.rt.blobs.put(ctx, a.id, a.epoch, strings.NewReader(text))`, `b, err := &messages.Blob{SHA256: messages.DigestOf([]byte(text)), Size: int64(len(text))}, error(nil)
		go func() { _, _ = a.rt.store.PutBlob(context.WithoutCancel(ctx), a.id, strings.NewReader(text)) }()`},
	{"keep the text in the history", "(*agent).offloadText",
		`return "", b`, `return text, b`},
	{"show a model only the beginning of a blob", "excerpt",
		`strings.ToValidUTF8(string(tail), "")`, `""`},
	{"passivate with work to do", "(*agent).idle",
		`&& (!a.state.Open() || len(a.running) == 0 && a.def.turn.Unknown())`, ``},
}

// faultActs is within how many acts a fault must be found. A fault that only shows in a rare order of
// goroutines has a test of that order instead, as TestSteerWhileTurnEnds.
const faultActs = 120_000

// table returns all faults.
func table() (list []faulttest.Fault) {
	for _, f := range faults {
		list = append(list, faulttest.Fault{Name: f.Name, Func: f.Func, Old: f.Old, New: f.New})
	}
	return append(list, forkFaults...)
}

func TestFaultsFit(t *testing.T) { faulttest.FaultsFit(t, table()) }

// TestFaults needs a build for each fault: make test-faults-actors.
func TestFaults(t *testing.T) { faulttest.Faults(t, "actors", "acts", table()) }

// TestHunt searches for the first run that breaks a rule.
func TestHunt(t *testing.T) {
	faulttest.Hunting(t)
	acts := 0
	for seed := uint64(0); acts < faultActs; seed++ {
		l := simulate(t, seed, plan(seed))
		acts += len(l.acts)
		if l.wrong == nil {
			continue
		}
		short := shrink(t, l)
		what, _, _ := strings.Cut(l.wrong[0], "\n")
		faulttest.Found{Seed: seed, Took: acts, Shortest: len(short.acts), What: what}.Print(t)
		return
	}
}
