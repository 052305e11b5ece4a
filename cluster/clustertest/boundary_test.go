//go:build unix

package clustertest_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/clustertest"
	"github.com/reprise-dev/reprise/messages"
)

// A story of inputs, tools, approvals and a child is run twice for each of its frames, of any
// agent, and the node's process is killed there: before the frame is stored, and when it is and
// the node does not know. Each story ends as one without a kill.
func TestKilledAtEveryFrame(t *testing.T) { // A24
	w := clustertest.New(t, clustertest.Nodes(1), clustertest.Limit(8*time.Minute))
	begin(t, w, "worker/whole").play(nil, nil)
	frames, killed := w.Prove().Frames, make(map[bool]int)
	for at := 1; at <= frames; at++ {
		for _, stored := range []bool{false, true} {
			w.Settled()
			node, before := w.Node(0), 0
			var met <-chan struct{}
			w.Eventually("nothing is written meanwhile", func() bool {
				before, met = w.Stored(), node.StopAt(at, stored)
				return w.Stored() == before
			})
			begin(t, w, fmt.Sprintf("worker/at%d-%t", at, stored)).play(met, func() {
				killed[stored]++
				node.Kill()
				want := at - 1
				if stored {
					want = at
				}
				if got := w.Stored() - before; got != want {
					t.Errorf("killed at frame %d, and %d are stored, want %d", at, got, want)
				}
				node.Cut() // loses what was on its way
				node.Heal()
				node.Start()
			})
		}
	}
	got := w.Prove()
	for _, stored := range []bool{false, true} { // agents that write at the same time share frames: there may be one or two fewer
		if killed[stored] < frames-2 {
			t.Errorf("killed %d times at %d frames (stored: %t)", killed[stored], frames, stored)
		}
	}
	t.Logf("killed %v times at %d frames; %+v", killed, frames, got)
}

// story is what becomes of one agent.
type story struct {
	t       *testing.T
	w       *clustertest.World
	js      jetstream.JetStream
	agent   messages.AgentID
	inputs  [2]string
	decided map[string]bool
}

// plans are what the two inputs want; a person must let what is signed.
var plans = [2]string{
	clustertest.Pay + "+" + clustertest.Look + " " + clustertest.Ask + ":" + clustertest.Look + "," + clustertest.Sign + " " + clustertest.Sign,
	clustertest.Look,
}

func begin(t *testing.T, w *clustertest.World, agent string) *story {
	t.Helper()
	a, err := messages.ParseAgentID(agent)
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(w.Conn())
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, w: w, js: js, agent: a, decided: make(map[string]bool)}
	for i, plan := range plans {
		s.inputs[i] = fmt.Sprintf("%s-%d", a.Key, i)
		w.Send(agent, s.inputs[i], plan)
	}
	return s
}

// play approves what waits for a person until both turns have completed. kill is called
// once met is closed.
func (s *story) play(met <-chan struct{}, kill func()) {
	s.t.Helper()
	s.w.Eventually("both turns complete", func() bool {
		select {
		case <-met:
			met = nil
			kill()
		default:
		}
		var outputs []string
		for _, ev := range s.w.Events(s.agent.String()) {
			switch ev := ev.(type) {
			case messages.ApprovalRequested:
				s.approve(ev.Turn, ev.Call)
			case messages.ChildWaiting:
				for _, below := range ev.Waiting {
					s.approve(below.Turn, below.Call)
				}
			case messages.TurnCompleted:
				outputs = append(outputs, ev.Output)
			}
		}
		for i, output := range outputs {
			if want := clustertest.Output(s.inputs[i], plans[i]); output != want {
				s.t.Errorf("turn %d of %s says %q, want %q", i+1, s.agent, output, want)
			}
		}
		return len(outputs) == len(plans)
	})
}

// approve stores an approval, and waits for no answer: the node may have been stopped.
func (s *story) approve(turn messages.TurnID, call messages.CallID) {
	s.t.Helper()
	id := fmt.Sprintf("approve-%s-%s", turn, call)
	if s.decided[id] {
		return
	}
	s.decided[id] = true
	body, err := json.Marshal(map[string]any{"type": "approve", "id": id, "turn": turn, "call": call})
	if err == nil {
		_, err = s.js.Publish(s.w.Context(), messages.Subjects{}.Ctl(s.agent), body)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}
