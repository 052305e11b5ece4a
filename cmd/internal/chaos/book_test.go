//go:build unix

package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/clustertest"
	"github.com/reprise-dev/reprise/messages"
)

// sent is an input or command as its publisher knows it.
type sent struct {
	ID, Agent, Publisher string
	// Number counts what the publisher sent.
	Number int
	// Command is input, or the type of a command.
	Command string
	Policy  messages.Policy
	Plan    plan
	// Said is the id in its text, if that is another: of an agent's task.
	Said string
	// Delay is how much later it is to come than At, when it was first sent.
	Delay time.Duration
	At    time.Time
	// Life is that of the node when it was acknowledged; 0: it was not.
	Life int
	// Refused is the code of a refusal at the endpoint. Empty: none.
	Refused messages.Code
}

// owed reports whether the agent must have taken it: it was acknowledged, and nothing
// about it may be refused.
func (s *sent) owed() bool {
	return s.Life > 0 && s.Refused == "" && s.Policy != messages.PolicyReject
}

// answer is what its turn says in the end, if all goes well.
func (s *sent) answer() string {
	return s.Plan.output(cmp.Or(s.Said, s.ID))
}

// book is what the bookkeeper knows: what was acknowledged, and what readers
// were shown. Safe for concurrent use.
type book struct {
	clustertest.Watched
	sent    map[string]*sent
	shown   map[string]map[messages.EventNumber]client.Event
	ended   map[string]bool  // inputs that a terminal event lists
	open    map[string]*sent // inputs that are owed one which no reader has seen
	waiting []waitingCall    // not yet looked at by the person
	calls   map[callOf]client.Event
	decided []decided
	child   string // that was brought to life last
	// branches are agents that begin with the events of others.
	branches map[string]*branch
	acks     int // of inputs
	facts    int // that readers were shown
	again    int // sent once more under an id that was acknowledged
	// differ are events that readers were shown twice, and differently.
	differ []violation
}

// decided is a decision of the person that was acknowledged.
type decided struct {
	callOf
	// told is the type of the event that records it, which comes after the one
	// that the person was asked by.
	told  string
	after messages.EventNumber
}

// callOf names a tool call of an agent.
type callOf struct {
	Agent string
	Call  messages.CallID
}

// waitingCall waits for a person, as an event said.
type waitingCall struct {
	callOf
	client.Event
	// wait is the call below, where the event names one: callOf is then the
	// call of the root that it is for.
	wait *messages.Wait
}

// doubtful reports whether the outcome of the call is unknown.
func (c waitingCall) doubtful() bool {
	return c.Type == "tool.unknown" || c.wait != nil && c.wait.Kind == messages.WaitUnknown
}

func newBook() *book {
	return &book{
		sent: make(map[string]*sent), ended: make(map[string]bool), open: make(map[string]*sent),
		shown: make(map[string]map[messages.EventNumber]client.Event), calls: make(map[callOf]client.Event),
		branches: make(map[string]*branch),
	}
}

// see takes in an event that a reader was shown. One that was shown before and
// was another then must not be: it is a fault at once, and kept for the proof.
func (w *world) see(agent string, e client.Event) {
	if was, same := w.book.see(agent, e); !same {
		w.fault("%v", violation{agent, shownTwice, []client.Event{was, e}})
	}
}

const shownTwice = "an event was shown twice, and differently"

// sameEvent reports whether two readings are of one event.
func sameEvent(a, b client.Event) bool {
	return a.Type == b.Type && a.Frame == b.Frame && string(a.Data) == string(b.Data)
}

// see writes an event down. If it was another when it was shown before, that one is returned.
func (b *book) see(agent string, e client.Event) (was client.Event, same bool) {
	same = true
	b.Write(func() {
		if b.shown[agent] == nil {
			b.shown[agent] = make(map[messages.EventNumber]client.Event)
		}
		var before bool
		if was, before = b.shown[agent][e.N]; before {
			if same = b.branches[agent].same(e, was); !same {
				b.differ = append(b.differ, violation{agent, shownTwice, []client.Event{was, e}})
			}
			return
		}
		b.shown[agent][e.N] = e
		b.facts++
		of := b.branches[agent]
		for _, id := range endedBy(e) {
			if s := b.sent[id]; of != nil && (s == nil || s.Agent != agent) {
				continue // its source ends that itself
			}
			b.ended[id] = true
			delete(b.open, id)
		}
		if of != nil && (e.N <= of.at || e.Type == "child.spawned") {
			return // what waits since before it began was inherited
		}
		switch e.Type {
		case "child.spawned":
			b.child = field(e).Child
		case "tool.requested":
			b.calls[callOf{agent, field(e).Call}] = e
		case "tool.unknown", "approval.requested":
			b.waiting = append(b.waiting, waitingCall{callOf{agent, field(e).Call}, e, nil})
		case "child.waiting":
			for _, wait := range field(e).Waiting {
				b.waiting = append(b.waiting, waitingCall{callOf{agent, field(e).Call}, e, &wait})
			}
		}
	})
	return was, same
}

// fields are those of an event's data that matter here.
type fields struct {
	Input       string
	Inputs      []string
	Disposition messages.Disposition
	Call        messages.CallID
	Tool        string
	OnUnknown   messages.OnUnknown `json:"on_unknown"`
	Key         string
	Attempt     int
	Arguments   string
	ArgsHash    string `json:"args_hash"`
	Output      string
	By          string
	Reason      string
	Command     string
	Patch       map[string]int
	Continues   messages.TurnID
	Content     messages.Content
	Parent      *messages.Parent
	Blob        *messages.Blob
	Waiting     []messages.Wait
	Child       string
	N           messages.EventNumber
	How         string
	Dry         bool
	Fork        string
}

// task is what a call that was asked for wants of another agent.
func (f fields) task() (text string, ok bool) {
	var a struct{ Input string }
	ok = (f.Tool == ask || f.Tool == deep) && json.Unmarshal([]byte(f.Arguments), &a) == nil
	return a.Input, ok
}

// output is the digest of what the event says.
func (f fields) output() messages.Digest {
	if f.Blob != nil {
		return f.Blob.SHA256
	}
	return digest(f.Output)
}

func field(e client.Event) (f fields) {
	_ = json.Unmarshal(e.Data, &f) // what is missing is zero, and found so by the proof
	return f
}

// endedBy are the inputs that an event ends.
func endedBy(e client.Event) []string {
	switch e.Type {
	case "turn.completed", "turn.failed", "turn.aborted":
		return field(e).Inputs
	case "input.cancelled", "input.dropped":
		return []string{field(e).Input}
	}
	return nil
}

// String counts.
func (b *book) String() string {
	b.Lock()
	defer b.Unlock()
	commands, refused := 0, make(map[messages.Code]int)
	for _, s := range b.sent {
		if s.Command != "input" && s.Life > 0 {
			commands++
		}
		if s.Refused != "" {
			refused[s.Refused]++
		}
	}
	return fmt.Sprintf("%d inputs and %d commands acknowledged, %d sent again, %d calls decided by the person, %d inputs open, refused at the endpoint %v",
		b.acks, commands, b.again, len(b.decided), len(b.open), refused)
}

// unended lists the inputs that are open, agent by agent.
func (b *book) unended() string {
	b.Lock()
	defer b.Unlock()
	byAgent := make(map[string][]string)
	for _, s := range b.open {
		byAgent[s.Agent] = append(byAgent[s.Agent], fmt.Sprintf("%s (%s, life %d)", s.ID, s.Policy, s.Life))
	}
	var out strings.Builder
	for _, agent := range slices.Sorted(maps.Keys(byAgent)) {
		fmt.Fprintf(&out, "%s owes %s\n", agent, strings.Join(byAgent[agent], ", "))
		seen := slices.Sorted(maps.Keys(b.shown[agent]))
		for _, n := range seen[max(0, len(seen)-5):] {
			e := b.shown[agent][n]
			fmt.Fprintf(&out, "  %d %s %s\n", e.N, e.Type, e.Data)
		}
	}
	return out.String()
}
