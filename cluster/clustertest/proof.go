//go:build unix

package clustertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// fault enters what must not be. b.mu is held.
func (b *book) fault(format string, args ...any) {
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// Settled waits until every input that was acknowledged, or taken by an agent, has
// ended, as the log says.
func (w *World) Settled() {
	w.t.Helper()
	b := w.book
	if !b.Until(w.ctx, nil, func() bool { return b.open == 0 && len(b.taken) == 0 }) {
		w.t.Fatalf("not every input has ended:\n%s", w.unended())
	}
	w.note("every input has ended")
}

// unended lists what was acknowledged and has not ended, as far as the book knows,
// and what the log says of it.
func (w *World) unended() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // the world's time may be over
	defer cancel()
	log, err := readLog(ctx, w.js)
	left, oldest, unknown := w.client.Backlog(ctx)
	b := w.book
	b.Lock()
	defer b.Unlock()
	var out strings.Builder
	_, _ = fmt.Fprintf(&out, "%d inputs are stored and not applied, the oldest since %s (%v)\n", left, time.Since(oldest), unknown)
	if err != nil {
		_, _ = fmt.Fprintln(&out, "the log cannot be read:", err)
	}
	for _, id := range slices.Sorted(maps.Keys(b.sent)) {
		s := b.sent[id]
		if s.acked.IsZero() || b.ended[id] {
			continue
		}
		said := "nothing"
		for _, ev := range events(log[agentID(s.agent)]) {
			in, is := ev.(messages.InputAccepted)
			switch {
			case slices.Contains(endedBy(ev), id):
				said = "that it has ended"
			case is && in.Input == id:
				said = "that it was taken"
			}
		}
		_, _ = fmt.Fprintf(&out, "%s (%s) of %s, partition %s: the log says %s\n", id, s.plan, s.agent, w.partition(s.agent), said)
	}
	return out.String()
}

// Account is what a proof has counted.
type Account struct {
	Agents, Frames, Acked int
	// Moves counts the changes of owner of partitions, the first ones left out.
	Moves int
	// Takeovers counts frames that say that an agent has a new owner.
	Takeovers int
	// Pause is the longest time between two acknowledgements, Rest that between two
	// frames, Wait that from the first sending of an input to the frame that accepts it.
	Pause, Rest, Wait time.Duration
}

// Prove waits until every input has ended, then holds the book against the streams
// and fails the test for everything that must not be:
//
//   - an acknowledged input that is not in the log, or twice; one that ended not once;
//     one that was never sent
//   - two turns of an agent at a time; a turn whose answer is not made of its calls
//   - inputs of one publisher to one agent out of order
//   - a gap in an agent's numbers or chain of frames; an epoch below one before it;
//     an epoch that two nodes had
//   - a visit at the shop that no frame intended before, or that came from another
//     node than the one that had the epoch; two visits of a call with OnUnknown Pause; two
//     keys for one call of a plan
//   - an event that a caller was shown and that is not in the log
func (w *World) Prove() Account {
	w.t.Helper()
	visits, log := w.quiet()
	b := w.book
	b.Lock()
	defer b.Unlock()
	e := &evidence{w: w, b: b, log: log, visits: visits, intended: make(map[attempt]intent), account: Account{Acked: b.acks, Pause: b.pause}}
	var times []time.Time
	for a, frames := range log {
		for _, s := range frames {
			times = append(times, s.at)
		}
		e.chain(a, frames)
		e.inputs(a, frames)
		e.waits(frames)
		e.turns(a, e.whole(frames))
		e.calls(frames)
		e.account.Agents++
		e.account.Frames += len(frames)
	}
	slices.SortFunc(times, time.Time.Compare)
	for i := range times[min(1, len(times)):] {
		e.account.Rest = max(e.account.Rest, times[i+1].Sub(times[i]))
	}
	e.lost()
	e.effects()
	e.memory()
	e.report()
	return e.account
}

// ProveChains reads the streams and fails the test for a gap in an agent's numbers
// or chain of frames, an epoch below one before it, and an epoch that two nodes had.
// It is the part of [World.Prove] that needs no [Load], and waits for nothing. Of an
// agent that was deleted it holds what came after.
func (w *World) ProveChains() Account {
	w.t.Helper()
	log, err := readLog(w.ctx, w.js)
	w.ok(err)
	b := w.book
	b.Lock()
	defer b.Unlock()
	e := &evidence{w: w, b: b, log: log}
	for a, frames := range log {
		e.chain(a, frames)
		e.account.Agents++
		e.account.Frames += len(frames)
	}
	e.report()
	return e.account
}

// report fails the test for each fault.
func (e *evidence) report() {
	w, b := e.w, e.b
	w.t.Helper()
	w.leases.mu.Lock()
	b.faults = append(b.faults, w.leases.faults...)
	w.leases.mu.Unlock()
	e.account.Moves = w.Moves()
	for i, f := range b.faults {
		if i == 20 {
			w.t.Errorf("and %d more", len(b.faults)-i)
			break
		}
		w.t.Error(f)
	}
	w.note("proven: %+v", e.account)
}

// quiet reads the log when all is over in it, and the visits at the shop before that.
func (w *World) quiet() (visits []Visit, log map[messages.AgentID][]stored) {
	w.t.Helper()
	for {
		w.Settled()
		visits = w.shop.all()
		var err error
		log, err = readLog(w.ctx, w.js)
		w.ok(err)
		open := 0
		for _, frames := range log {
			for _, ev := range events(frames) {
				switch ev := ev.(type) {
				case messages.TurnStarted:
					open++
				case messages.AgentForked:
					if ev.Turn != "" {
						open++
					}
				case messages.TurnCompleted, messages.TurnFailed, messages.TurnAborted:
					open--
				}
			}
		}
		if open == 0 {
			return visits, log
		}
	}
}

// evidence is the log when all is over. The book is locked.
type evidence struct {
	w        *World
	b        *book
	log      map[messages.AgentID][]stored
	visits   []Visit
	intended map[attempt]intent
	account  Account
}

// attempt is one of a tool's call.
type attempt struct {
	key string
	n   int
}

// intent is who said that it would be made.
type intent struct {
	agent messages.AgentID
	epoch messages.Epoch
}

// chain holds that frames follow one another, under epochs that do not fall.
func (e *evidence) chain(a messages.AgentID, frames []stored) {
	var last stored
	for _, s := range frames {
		f := s.frame
		if last.frame == nil {
			if messages.Is(f.Events[0].EventType(), messages.BeginsFork) && f.Prev == "" {
				e.prefix(a, frames)
			} else if (f.First != 1 || f.Prev != "") && !tombstone(f) {
				e.b.fault("the first frame of %s begins with event %d and follows %q", a, f.First, f.Prev)
			}
		} else {
			if f.First != last.frame.Last()+1 || f.Prev != last.frame.ID || f.PrevDigest != last.digest {
				e.b.fault("frame %s of %s, event %d, does not follow frame %s, which ends with event %d", f.ID, a, f.First, last.frame.ID, last.frame.Last())
			}
			if f.Epoch < last.frame.Epoch {
				e.b.fault("frame %s of %s has epoch %d, the one before it %d", f.ID, a, f.Epoch, last.frame.Epoch)
			}
		}
		for _, ev := range f.Events {
			if _, is := ev.(messages.AgentActivated); is {
				e.account.Takeovers++
			}
		}
		last = s
	}
}

// prefix holds that the frame whose events come last before the own first one of an agent is its parent's,
// in the log or in a blob that the log names, unless the agent has copied them, for then its parent may be
// deleted. What is in front of an imported agent is in no log, and which it is of an encrypted one cannot be read.
func (e *evidence) prefix(a messages.AgentID, frames []stored) {
	f := frames[0].frame
	p, is := messages.PrefixOf(f)
	if !is && !f.Encrypted() {
		e.b.fault("the first frame of %s begins with event %d, and names no events before that", a, f.First)
	}
	known := slices.ContainsFunc(e.log[p.Agent], func(s stored) bool { return endsIn(p, s) }) ||
		slices.ContainsFunc(frames, func(s stored) bool { return copies(s, p) })
	if !known && p.Agent != (messages.AgentID{}) {
		e.b.fault("%s begins with the events of %s up to %d, whose frame is not the one with the digest %s", a, p.Agent, p.Last, p.Digest)
	}
}

// endsIn reports whether a prefix ends in a frame of its agent, or in the blob that the frame names: that of an
// import or a copy. The digest of a frame before the end of the blob is in no log. It is not compared here: a
// reader of the fork compares it.
func endsIn(p messages.Prefix, s stored) bool {
	blob, is := messages.StoredPrefixOf(s.frame)
	return s.frame.First <= p.Last && p.Last <= s.frame.Last() && s.digest == p.Digest ||
		is && (p.Last < blob.Last || p.Last == blob.Last && p.Digest == blob.Digest)
}

// copies reports whether an agent has copied, by a frame, all of the prefix that it begins with.
func copies(s stored, p messages.Prefix) bool {
	c, is := messages.CopyOf(s.frame)
	return is && c.Last == p.Last
}

// whole are the frames of an agent behind those of the parents that it begins with.
func (e *evidence) whole(own []stored) (frames []stored) {
	p, is := messages.PrefixOf(own[0].frame)
	if !is || len(e.log[p.Agent]) == 0 {
		return own
	}
	for _, s := range e.whole(e.log[p.Agent]) {
		if s.frame.First > p.Last {
			break
		}
		s.frame = eventlog.Recorded{Frame: s.frame}.Upto(p.Last).Frame
		frames = append(frames, s)
	}
	return append(frames, own...)
}

// tombstone reports whether what was before a frame is rightly gone.
func tombstone(f *messages.Frame) bool {
	return slices.ContainsFunc(f.Events, func(ev messages.Event) bool {
		_, is := ev.(messages.AgentDeleted)
		return is
	})
}

// inputs holds that every input was sent, taken once, ended once, and in its
// publisher's order.
func (e *evidence) inputs(a messages.AgentID, frames []stored) {
	taken, ended := make(map[string]int), make(map[string]int)
	before := make(map[string]*sent)
	for _, ev := range events(frames) {
		for _, id := range endedBy(ev) {
			ended[id]++
		}
		in, is := ev.(messages.InputAccepted)
		if !is {
			continue
		}
		taken[in.Input]++
		s := e.b.sent[in.Input]
		switch {
		case in.Parent != nil:
			continue // a call's of an agent above
		case s == nil || agentID(s.agent) != a:
			e.b.fault("input %s was taken by %s, and was never sent there", in.Input, a)
			continue
		}
		if b := before[s.publisher]; b != nil && b.number > s.number {
			e.b.fault("%s of %s was taken before %s: its publisher sent them the other way round", b.id, a, s.id)
		}
		before[s.publisher] = s
	}
	for id, n := range taken {
		if n != 1 || ended[id] != 1 {
			e.b.fault("input %s was taken %d times by %s and ended %d times", id, n, a, ended[id])
		}
	}
}

// lost holds that every acknowledged input is in the log of its agent.
func (e *evidence) lost() {
	for id, s := range e.b.sent {
		if s.acked.IsZero() {
			continue
		}
		found := slices.ContainsFunc(events(e.log[agentID(s.agent)]), func(ev messages.Event) bool {
			in, is := ev.(messages.InputAccepted)
			return is && in.Input == id
		})
		if !found {
			e.b.fault("input %s to %s was acknowledged and is lost", id, s.agent)
		}
	}
}

// turns holds that one turn runs at a time, and says in the end what it should.
func (e *evidence) turns(a messages.AgentID, frames []stored) {
	var running messages.TurnID
	end := func(t messages.TurnID) {
		if t != running {
			e.b.fault("turn %s of %s ended while %q ran", t, a, running)
		}
		running = ""
	}
	texts := make(map[string]string)
	for _, ev := range events(frames) {
		switch ev := ev.(type) {
		case messages.InputAccepted:
			texts[ev.Input] = ev.Content.Text()
		case messages.TurnStarted:
			if running != "" {
				e.b.fault("turn %s of %s began while %s ran", ev.Turn, a, running)
			}
			running = ev.Turn
		case messages.TurnCompleted:
			end(ev.Turn)
			if want := outputOf(texts[strings.Join(ev.Inputs, " ")]); len(ev.Inputs) == 1 && ev.Output != want {
				e.b.fault("turn %s of %s says %q, want %q", ev.Turn, a, ev.Output, want)
			}
		case messages.TurnFailed:
			end(ev.Turn)
			e.b.fault("turn %s of %s failed: %s: %s", ev.Turn, a, ev.Reason, ev.Message)
		case messages.TurnAborted:
			end(ev.Turn)
		}
	}
	if running != "" {
		e.b.fault("turn %s of %s has not ended", running, a)
	}
}

// calls keeps who intended which attempt of a tool.
func (e *evidence) calls(frames []stored) {
	for _, s := range frames {
		for _, ev := range s.frame.Events {
			if started, is := ev.(messages.ToolStarted); is && !started.Dry {
				e.intended[attempt{started.Key, started.Attempt}] = intent{s.agent, s.frame.Epoch}
			}
		}
	}
}

// effects holds the visits at the shop against what was intended.
func (e *evidence) effects() {
	type place struct {
		input    string
		position int
	}
	once, keys := make(map[string]int), make(map[place]string)
	for _, v := range e.visits {
		in, is := e.intended[attempt{v.Key, v.Attempt}]
		if !is {
			e.b.fault("attempt %d of %s came from %s, and no frame said so before", v.Attempt, v.Key, v.Node)
			continue
		}
		if by := e.b.process[e.w.leases.writer(in.agent.Partition(), in.epoch)]; by != "" && by != v.Node {
			e.b.fault("attempt %d of %s came from %s, and epoch %d was that of %s", v.Attempt, v.Key, v.Node, in.epoch, by)
		}
		if v.Tool == Once {
			once[v.Key]++
		}
		p := place{v.Input, v.Position}
		if other := keys[p]; other != "" && other != v.Key {
			e.b.fault("call %d of input %s was made under two keys: %s and %s", v.Position, v.Input, other, v.Key)
		}
		keys[p] = v.Key
	}
	for key, n := range once {
		if n > 1 {
			e.b.fault("%d visits under %s, whose on_unknown is pause", n, key)
		}
	}
}

// memory holds that what callers were shown is in the log.
func (e *evidence) memory() {
	for agent, shown := range e.b.shown {
		frames := e.log[agentID(agent)]
		at := make(map[uint64]*messages.Frame)
		for _, s := range frames {
			for i := range s.frame.Events {
				at[uint64(s.frame.First)+uint64(i)] = s.frame
			}
		}
		for n, was := range shown {
			f := at[n]
			if f == nil || f.ID != was.Frame || f.Events[n-uint64(f.First)].EventType() != was.Type {
				e.b.fault("event %d of %s, %s in frame %s, was shown to a caller and is not in the log", n, agent, was.Type, was.Frame)
			}
		}
	}
}

func events(frames []stored) (all []messages.Event) {
	for _, s := range frames {
		all = append(all, s.frame.Events...)
	}
	return all
}

// agentID reads an address that was checked before.
func agentID(agent string) messages.AgentID {
	a, _ := messages.ParseAgentID(agent)
	return a
}
