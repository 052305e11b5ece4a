//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// mortals is how many agents are deleted again and again, each followed by one
// that begins afresh under its address and is sent inputs under the same ids.
const mortals = 2

// mortal leads such an agent through its lives. What it says in a life is marked with the number
// of it, as in m0-1_3: input m0-1 in life 3.
type mortal struct {
	w      *world
	name   string
	agent  string
	random *rand.Rand

	life int
	// tombstone ends the life before this one, sent is what was sent in this one.
	tombstone messages.EventNumber
	sent      map[string]bool
}

func newMortal(w *world, i int) *mortal {
	name := fmt.Sprintf("m%d", i)
	return &mortal{
		w: w, name: name, agent: fmt.Sprintf("default/%s/%s", []string{"worker", "clerk"}[i%2], name),
		random: rand.New(rand.NewPCG(*seed, 1<<40+uint64(i))),
	}
}

// run lives until no load is wanted any more, and once more then.
func (m *mortal) run() {
	for {
		m.life, m.sent = m.life+1, make(map[string]bool)
		last := false
		select {
		case <-m.w.stopping:
			last = true
		default:
		}
		if err := m.live(last); err != nil {
			m.w.fault("life %d of %s: %v", m.life, m.agent, err)
			return
		}
		if last || m.w.ctx.Err() != nil {
			return
		}
		if err := m.die(); err != nil {
			m.w.fault("the end of life %d of %s: %v", m.life, m.agent, err)
			return
		}
	}
}

// live sends some inputs: of the first the answers are awaited. Unless the life
// is the last one, a call below it may wait for a person who never comes.
func (m *mortal) live(last bool) error {
	for n := range 2 + m.random.IntN(2) {
		if err := m.ask(n); err != nil {
			return err
		}
		if n == 0 {
			m.w.system.met(onAnew)
		}
	}
	for n := 4; n < 4+m.random.IntN(3); n++ {
		in := m.input(n, m.plan())
		if !last && m.random.IntN(3) == 0 {
			in = m.input(n, plan{{"rerun", []string{"ask:" + gated, "deep:" + gated, gated}[m.random.IntN(3)]}})
		}
		if n == 5 {
			in.In = messages.Span(2 * time.Second)
		}
		if _, err := m.w.insist(func(d *endpoint) error {
			_, err := d.client.Send(d.ctx, m.agent, in)
			return err
		}); err != nil {
			return fmt.Errorf("input %s: %w", in.ID, err)
		}
		m.sent[in.ID] = true
	}
	return nil
}

func (m *mortal) plan() plan {
	steps := []string{"read_only", "rerun", large, "ask:rerun", "ask:" + large, "deep:read_only,rerun"}
	return plan{{steps[m.random.IntN(len(steps))]}, {steps[m.random.IntN(len(steps))]}}[m.random.IntN(2):]
}

func (m *mortal) input(n int, p plan) messages.Input {
	id := fmt.Sprintf("%s-%d", m.name, n)
	return messages.Input{ID: id, Content: messages.TextContent(p.text(fmt.Sprintf("%s_%d", id, m.life)))}
}

// ask holds that an input is answered in this life, by what it asks for.
func (m *mortal) ask(n int) error {
	p := m.plan()
	in := m.input(n, p)
	var end client.Event
	_, err := m.w.insist(func(d *endpoint) error {
		for e, err := range d.client.AskFacts(d.ctx, m.agent, in) {
			if err != nil {
				return err
			}
			if end = e; e.Terminal() {
				return nil
			}
		}
		return errors.New("the stream ended without the turn's end")
	})
	if err != nil {
		return fmt.Errorf("input %s: %w", in.ID, err)
	}
	m.sent[in.ID] = true
	if want := p.output(fmt.Sprintf("%s_%d", in.ID, m.life)); end.Type == "turn.completed" && end.Output != want {
		return fmt.Errorf("input %s: %s %.200q, want %.200q", in.ID, end.Type, end.Output, want)
	}
	if end.N <= m.tombstone {
		return fmt.Errorf("input %s ended with event %d of an earlier life, which ended with %d", in.ID, end.N, m.tombstone)
	}
	return nil
}

// die deletes the agent and holds that nothing of it can be read.
func (m *mortal) die() error {
	c := messages.Delete{ID: fmt.Sprintf("%s-end-%d", m.name, m.life), Reason: "its time has come"}
	if _, err := m.w.insist(func(d *endpoint) error {
		_, err := d.client.Do(d.ctx, m.agent, c)
		return err
	}); err != nil {
		return err
	}
	m.w.system.met(onDelete)
	if err := m.buried(); err != nil || m.w.ctx.Err() != nil {
		return err
	}
	_, err := m.w.insist(m.nothing)
	return err
}

var errUnburied = errors.New("it is not gone yet")

// buried waits until the agent's tombstone says that all is gone.
func (m *mortal) buried() error {
	for range 10 * patience {
		_, err := m.w.insist(func(d *endpoint) error {
			s, err := d.client.Show(d.ctx, m.agent)
			if err != nil {
				return err
			}
			if s.Deleted != nil && s.Deleted.N > m.tombstone { // a server that has just come to lead may show the life before
				m.tombstone = s.Deleted.N
				return nil
			}
			return &messages.Error{Code: messages.Conflict, Message: errUnburied.Error()}
		})
		if err == nil || m.w.ctx.Err() != nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-m.w.ctx.Done():
		}
	}
	return errUnburied
}

// nothing holds that a reader is shown the tombstone and nothing before it. One that is
// not shown the tombstone sees what was before, and looks again.
func (m *mortal) nothing(d *endpoint) error {
	var shown []client.Event
	for line, err := range d.client.Query(d.ctx, m.agent, messages.Query{View: "events"}) {
		var e client.Event
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			return err
		}
		shown = append(shown, e)
	}
	if n := len(shown); n > 0 && shown[n-1].N < m.tombstone {
		return messages.Refuse(messages.Unavailable, "the events of %s end with %d, before its tombstone %d", m.agent, shown[n-1].N, m.tombstone)
	}
	for _, e := range shown {
		if e.N < m.tombstone || e.Type != "agent.deleted" && e.Type != "agent.activated" && e.Type != "command.noop" {
			m.w.fault("%v", violation{m.agent, "an event of a deleted agent is shown", []client.Event{e}})
		}
	}
	for line, err := range d.client.Query(d.ctx, m.agent, messages.Query{View: "history"}) {
		if err != nil {
			return err
		}
		m.w.fault("the history of deleted agent %s has %.200s", m.agent, line)
	}
	return nil
}

// told is what the log of a mortal must hold when all is over.
func (m *mortal) told(t *trial) {
	accepted, ended := make(map[string]int), make(map[string]int)
	mark := fmt.Sprintf("_%d:", m.life)
	for i, ev := range t.log {
		if want := t.log[0].N + messages.EventNumber(i); ev.N != want || ev.N < m.tombstone {
			t.wrong([]client.Event{ev}, "event number %d where %d is due, and the tombstone is %d", ev.N, want, m.tombstone)
		}
		if f := field(ev); ev.Type == "input.accepted" {
			accepted[f.Input]++
			if !regexp.MustCompile(mark).MatchString(f.Content.Text()) {
				t.wrong([]client.Event{ev}, "an input of an earlier life was accepted in life %d", m.life)
			}
		}
		for _, id := range endedBy(ev) {
			ended[id]++
		}
	}
	for id := range m.sent {
		if accepted[id] != 1 || ended[id] != 1 {
			t.wrong(t.about(id), "input %s of life %d was accepted %d times and ended %d times", id, m.life, accepted[id], ended[id])
		}
	}
}

// earlier finds what a mortal was sent or has said itself, with the number of the life. What its
// children were sent is theirs.
var earlier = regexp.MustCompile(`\bm(\d)-\d_(\d+)[^.\d]`)

// search looks through everything that is stored for what was said in lives that
// are over.
func (w *world) search(server string) error {
	nc, err := nats.Connect(server, nats.Timeout(time.Minute))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	names := js.StreamNames(w.ctx)
	for name := range names.Name() {
		if err := w.searchStream(js, name); err != nil {
			return fmt.Errorf("stream %s: %w", name, err)
		}
	}
	return names.Err()
}

func (w *world) searchStream(js jetstream.JetStream, name string) error {
	ctx, cancel := context.WithTimeout(w.ctx, patience*time.Second)
	defer cancel()
	stream, err := js.Stream(ctx, name)
	if err != nil || stream.CachedInfo().State.Msgs == 0 || stream.CachedInfo().Config.Retention == jetstream.WorkQueuePolicy {
		return err // what is in the work queue is read by its consumers, and all of it was by now
	}
	all, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	messages, err := all.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		w.searchMessage(msg)
		meta, err := msg.Metadata()
		if err != nil || meta.NumPending == 0 {
			return err
		}
	}
}

func (w *world) searchMessage(msg jetstream.Msg) {
	for _, found := range earlier.FindAllSubmatch(msg.Data(), -1) {
		i, _ := strconv.Atoi(string(found[1])) // digits
		life, _ := strconv.Atoi(string(found[2]))
		if m := w.mortals[i]; life < m.life {
			w.fault("%s holds %q of %s, which is in life %d", msg.Subject(), found[0], m.agent, m.life)
			return
		}
	}
}
