//go:build unix

package clustertest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// Answer is how an input has ended.
type Answer struct {
	// Type is that of the event that ended it, N its number, Output what it says.
	Type   string
	N      messages.EventNumber
	Output string
	// Err is why there is none.
	Err error
}

// Input is one that wants a plan.
func Input(id, plan string) messages.Input {
	return messages.Input{ID: id, Content: messages.TextContent(Text(id, plan))}
}

// known enters an input of the test's own, as of a publisher that sends nothing else.
func (w *World) known(agent, id, plan string) *sent {
	s := &sent{id: id, agent: agent, publisher: id, number: 1, plan: plan, began: time.Now()}
	w.book.Write(func() {
		if was := w.book.sent[id]; was != nil && was.agent == agent {
			s = was
		} else if was == nil {
			w.book.sent[id] = s
		}
	})
	return s
}

// Ask prompts an agent with a plan under an id, and reads to the end. The book has
// one agent for each id.
func (w *World) Ask(agent, id, plan string) (got Answer) {
	w.t.Helper()
	s := w.known(agent, id, plan)
	for e, err := range w.client.AskFacts(w.ctx, agent, Input(id, plan)) {
		if err != nil {
			got.Err = err
			break
		}
		if e.N > 0 && w.book.knows(s) {
			w.book.ack(s)
			w.book.show(agent, e)
		}
		got = Answer{Type: e.Type, N: e.N, Output: e.Output}
	}
	w.note("%s was asked %s (%s): %+v", agent, id, plan, got)
	return got
}

// Send publishes an input that wants a plan and returns when it is stored.
func (w *World) Send(agent, id, plan string) {
	w.t.Helper()
	s := w.known(agent, id, plan)
	_, err := w.client.Send(w.ctx, agent, Input(id, plan))
	w.ok(err)
	w.book.ack(s)
	w.note("%s was sent %s (%s)", agent, id, plan)
}

// PromptOnce prompts an agent as `nats pub` would: it is said once, at any node's
// endpoint, and the answer is not read.
func (w *World) PromptOnce(agent, id, plan string) {
	w.t.Helper()
	w.known(agent, id, plan)
	body, err := json.Marshal(Input(id, plan))
	w.ok(err)
	w.ok(w.nc.PublishMsg(&nats.Msg{Subject: messages.Prompt(agentID(agent)), Reply: w.nc.NewInbox(), Data: body}))
	w.ok(w.nc.Flush())
}

// Do sends a command and waits for the answer.
func (w *World) Do(agent string, c messages.Command) {
	w.t.Helper()
	_, err := w.client.Do(w.ctx, agent, c)
	w.ok(err)
}

// Events are those of an agent, as they are stored now.
func (w *World) Events(agent string) (all []messages.Event) {
	w.t.Helper()
	for s, err := range w.follow(agent, false) {
		w.ok(err)
		all = append(all, s.frame.Events...)
	}
	return all
}

// Until waits until an event of a type is stored of an agent, and returns what it says if it ends
// a turn.
func (w *World) Until(agent, eventType string) Answer {
	w.t.Helper()
	for s, err := range w.follow(agent, true) {
		if err != nil {
			w.t.Fatalf("waiting for %s of %s: %v", eventType, agent, err)
		}
		for i, ev := range s.frame.Events {
			if ev.EventType() != eventType {
				continue
			}
			got := Answer{Type: eventType, N: s.frame.First + messages.EventNumber(i)}
			if done, is := ev.(messages.TurnCompleted); is {
				got.Output = done.Output
			}
			w.note("%s has %s under epoch %d", agent, eventType, s.frame.Epoch)
			return got
		}
	}
	w.t.Fatalf("waiting for %s of %s: %v", eventType, agent, w.ctx.Err())
	return Answer{}
}

// Child waits until an agent's log names an agent below it, and returns its address.
func (w *World) Child(agent string) string {
	w.t.Helper()
	for s, err := range w.follow(agent, true) {
		w.ok(err)
		for _, ev := range s.frame.Events {
			if spawned, is := ev.(messages.ChildSpawned); is {
				return spawned.Child
			}
		}
	}
	w.t.Fatalf("%s has no child: %v", agent, w.ctx.Err())
	return ""
}

// Epoch is that of the frame in which an agent's newest event of a type is stored
// now; zero if there is none.
func (w *World) Epoch(agent, eventType string) (epoch messages.Epoch) {
	w.t.Helper()
	for s, err := range w.follow(agent, false) {
		w.ok(err)
		if Count(s.frame.Events, eventType) > 0 {
			epoch = s.frame.Epoch
		}
	}
	return epoch
}

// Count is how many events are of a type.
func Count(events []messages.Event, eventType string) (n int) {
	for _, ev := range events {
		if ev.EventType() == eventType {
			n++
		}
	}
	return n
}

// follow reads an agent's frames from its stream: those of now, or forever.
func (w *World) follow(agent string, ever bool) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		a := agentID(agent)
		filter := messages.Subjects{}.Log(a)
		stream, err := insist(w.ctx, func(ctx context.Context) (jetstream.Stream, error) {
			return w.js.Stream(ctx, streamNames.Log(a.Partition()))
		})
		var newest *jetstream.RawStreamMsg
		if err == nil && !ever {
			newest, err = insist(w.ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
				return stream.GetLastMsgForSubject(ctx, filter)
			})
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return
			}
		}
		if err != nil {
			yield(stored{}, err)
			return
		}
		for s, err := range frames(w.ctx, w.js, streamNames.Log(a.Partition()), filter) {
			if !yield(s, err) || err != nil || newest != nil && s.seq >= newest.Sequence {
				return
			}
		}
	}
}

// insist asks JetStream again until it answers: an answer may be lost with a server.
func insist[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	for {
		within, cancel := context.WithTimeout(ctx, 2*time.Second)
		got, err := ask(within)
		cancel()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrNoResponders) {
			return got, err
		}
	}
}

// Child is an agent below another, as that one's views show it.
type Child struct {
	Agent string
	Depth int
	Phase string
	Owner string // among the members
}

// Tree walks from an agent to those below it, through the endpoints, a parent before its
// children.
func (w *World) Tree(agent string) (all []Child) {
	w.t.Helper()
	shown := one[struct {
		Phase string
		Owner string
	}](w, agent, "show")
	all = []Child{{Agent: agent, Phase: shown[0].Phase, Owner: shown[0].Owner}}
	for _, below := range one[struct{ Agent messages.AgentID }](w, agent, "children") {
		for _, c := range w.Tree(below.Agent.String()) {
			c.Depth++
			all = append(all, c)
		}
	}
	return all
}

// one reads a view, as often as the endpoints say that trying again helps.
func one[T any](w *World, agent, view string) (list []T) {
	w.t.Helper()
	for {
		err := error(nil)
		list = nil
		for line, broken := range w.client.Query(w.ctx, agent, messages.Query{View: view}) {
			var v T
			if err = broken; err == nil {
				err = json.Unmarshal(line, &v)
			}
			if err != nil {
				break
			}
			list = append(list, v)
		}
		var refused *messages.Error
		if errors.As(err, &refused) && refused.Temporary() && w.ctx.Err() == nil {
			continue
		}
		w.ok(err)
		if len(list) == 0 && view == "show" {
			w.t.Fatalf("%s is not shown", agent)
		}
		return list
	}
}

// Pass lets some time pass, for what must last.
func (w *World) Pass(d time.Duration) {
	ctx, cancel := context.WithTimeout(w.ctx, d)
	defer cancel()
	<-ctx.Done()
	w.note("%s have passed", d)
}
