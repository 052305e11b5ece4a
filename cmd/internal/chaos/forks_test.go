//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// The shape of what forkers do: how many there are, and how many inputs are acknowledged for each
// agent that one makes or deletes.
const (
	forkers  = 2
	perForks = 12
)

// forker makes agents that begin with the events of others, and deletes them. No other client does, so it
// has the branches that it made.
type forker struct {
	publisher
	made []*branch // that are not gone
}

func newForker(w *world, i int) *forker {
	return &forker{publisher: publisher{w: w, name: fmt.Sprintf("f%d", i), prompt: i == 0, random: rand.New(rand.NewPCG(*seed, 1<<44+uint64(i)))}}
}

// step makes a branch and has it work, or clears, deletes or detaches one.
func (f *forker) step() {
	var err error
	switch n := f.random.IntN(12); {
	case n < 2 && len(f.made) > 0:
		err = f.delete(f.any(), "--cascade")
	case n < 4 && len(f.made) > 0:
		err = f.detach(f.any())
	case n < 5 && len(f.made) > 0:
		err = f.clear(f.any())
	case n < 7:
		err = f.branchOff(f.source(), f.imports)
	default:
		err = f.branchOff(f.source(), f.fork)
	}
	if err != nil {
		f.w.fault("%s: %v", f.name, err)
	}
}

// any draws a branch.
func (f *forker) any() *branch { return f.made[f.random.IntN(len(f.made))] }

// branchOff makes a branch, if there is an event for it, and has it work.
func (f *forker) branchOff(b *branch, how func(*branch) error) error {
	if b == nil {
		return nil
	}
	f.number++
	b.agent = fmt.Sprintf("%s/%s-%d", b.source[:strings.LastIndex(b.source, "/")], f.name, f.number)
	b.ctx, b.cancel = context.WithCancel(f.w.ctx)
	f.w.book.Write(func() { f.w.book.branches[b.agent] = b })
	if err := how(b); err != nil || !b.begun {
		return err
	}
	f.made = append(f.made, b)
	if err := f.adopt(b); err != nil {
		return fmt.Errorf("%s, of %s at event %d: %w", b.agent, b.source, b.at, err)
	}
	return f.work(b)
}

// source draws an agent and one of its events that a reader was shown: most often the last of its frame.
func (f *forker) source() *branch {
	var some []string
	for n := range agents {
		some = append(some, f.w.agent(n))
	}
	for _, b := range f.made {
		some = append(some, b.agent)
	}
	source := some[f.random.IntN(len(some))]
	f.w.book.Lock()
	defer f.w.book.Unlock()
	shown := f.w.book.shown[source]
	if len(shown) == 0 {
		return nil
	}
	at, inside := messages.EventNumber(1+f.random.IntN(len(shown))), f.random.IntN(4) == 0
	for !inside && shown[at].N > 0 && shown[at+1].Frame == shown[at].Frame { // else most are refused
		at++
	}
	return &branch{source: source, at: at}
}

// fork forks an agent, at its newest event if none is named, and waits until that is settled. An event
// inside of a step is refused.
func (f *forker) fork(b *branch) error {
	newest := b.at == 0
	if !newest {
		f.w.book.Write(func() { b.source = f.w.book.forkedAt(b.source, b.at) })
	}
	c := messages.Fork{ID: b.agent, Fork: b.agent, At: b.at}
	var answer messages.Answer
	if _, err := f.w.insist(func(d *endpoint) (err error) { answer, err = d.client.Do(d.ctx, b.source, c); return err }); err != nil {
		return err
	}
	f.w.system.met(onFork)
	var settled messages.ForkSettled
	_, err := f.w.insist(func(d *endpoint) error {
		for ev, err := range d.client.Events(d.ctx, b.source, client.Only(messages.Query{From: answer.N, Follow: true})) {
			if err != nil {
				return err
			}
			if ev.Type == settled.EventType() && field(client.Event{Data: ev.Data}).Fork == b.agent {
				return json.Unmarshal(ev.Data, &settled)
			}
		}
		return errors.New("the stream ended before the fork was settled")
	})
	if b.begun = settled.N > 0; b.begun && newest {
		f.w.book.Write(func() { b.at = settled.N - 1 })
	}
	if err == nil && !b.begun && (newest || settled.Refused != messages.Conflict) {
		err = errors.New(settled.Message)
	}
	return err
}

// imports exports an agent and imports the file under another address.
func (f *forker) imports(b *branch) error {
	file := filepath.Join(f.w.dir, f.name+".jsonl.gz")
	if _, err := f.run("export", b.source, "--at", fmt.Sprint(b.at), "--to", file, "--force"); err != nil {
		return err
	}
	args := []string{"import", file, "--as", b.agent, "-o", "json"}
	if f.random.IntN(2) == 0 {
		args = append(args, "--dry")
	}
	if f.w.encrypted {
		args = append(args, "--key-file", f.w.key())
	}
	out, err := f.run(args...)
	var line struct{ Last messages.EventNumber }
	if err == nil {
		err = json.Unmarshal(out, &line)
	}
	f.w.book.Write(func() { b.at, b.imported, b.begun = line.Last, true, err == nil })
	return err
}

// run runs a command of the product until it succeeds, but not forever. It is killed with the
// endpoint.
func (f *forker) run(args ...string) (out []byte, err error) {
	tries := 0
	_, over := f.w.insist(func(d *endpoint) error {
		out, err = f.once(d, args...)
		if tries++; tries == patience {
			return nil
		}
		return err
	})
	return out, errors.Join(over, err)
}

// once runs a command of the product.
func (f *forker) once(d *endpoint, args ...string) ([]byte, error) {
	out, err := f.w.command(d.ctx, append(args, "--nats", d.client.Server())...).Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		err = fmt.Errorf("%v: %w: %s", args, err, failed.Stderr)
	}
	return out, err
}

// adopt holds that the history of a branch is that of its source, and has it read.
func (f *forker) adopt(b *branch) error {
	if was, is := f.history(b.source, b.at), f.history(b.agent, b.at); !reflect.DeepEqual(was, is) {
		return fmt.Errorf("its history is\n%+v\nand that of its source was\n%+v", is, was)
	}
	log, err := f.log(b)
	if err != nil {
		return err
	}
	listed := 0
	if _, err := f.w.insist(func(d *endpoint) (err error) { listed, err = b.listed(d); return err }); err != nil {
		return err
	}
	if b.imported == (listed == 1) {
		return fmt.Errorf("its source lists it as a fork %d times", listed)
	}
	f.w.book.inherit(b, log)
	f.w.running.Go(func() { f.w.follow(b.ctx, b.agent) })
	return nil
}

// log reads the log of a branch.
func (f *forker) log(b *branch) (log []client.Event, err error) {
	_, over := f.w.insist(func(d *endpoint) error { log, err = readLog(d.ctx, d.client, b.agent); return err })
	return log, over
}

// listed is how often a branch is among the forks of its source.
func (b *branch) listed(d *endpoint) (n int, err error) {
	for fork, err := range d.client.Forks(d.ctx, b.source) {
		if err != nil {
			return 0, err
		}
		if fork.Agent.Full() == b.agent && fork.At == b.at && fork.Status == projections.ForkBegun {
			n++
		}
	}
	return n, nil
}

// history is what a model sees of an agent as of an event.
func (f *forker) history(agent string, at messages.EventNumber) (items []projections.HistoryItem) {
	_, err := f.w.insist(func(d *endpoint) error {
		items = nil
		for item, err := range d.client.History(d.ctx, agent, client.At(at)) {
			if err != nil {
				return err
			}
			items = append(items, item)
		}
		return nil
	})
	if err != nil {
		f.w.fault("the history of %s at event %d: %v", agent, at, err)
	}
	return items
}

// inherit enters the calls that wait for a person in a branch since before it began. Those of its first own
// frame its reader sees.
func (b *book) inherit(of *branch, log []client.Event) {
	doubts := make(map[messages.CallID]client.Event)
	b.Write(func() {
		for _, ev := range log {
			f := field(ev)
			switch {
			case ev.N == of.at+1:
				of.inside = ev.Turn != ""
			case ev.N > of.at:
			case ev.Type == "tool.requested":
				b.calls[callOf{of.agent, f.Call}] = ev
			case ev.Type == "tool.unknown":
				doubts[f.Call] = ev
			case strings.HasPrefix(ev.Type, "tool."):
				delete(doubts, f.Call)
			case len(endedBy(ev)) > 0 && strings.HasPrefix(ev.Type, "turn."):
				clear(doubts)
			}
		}
		for call, ev := range doubts {
			b.waiting = append(b.waiting, waitingCall{callOf{of.agent, call}, ev, nil})
		}
	})
}
