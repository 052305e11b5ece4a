package projections

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// timelineOf folds events that are recorded a quarter of a second apart.
func timelineOf(first int, events []messages.Event) *Timeline {
	t := new(Timeline)
	for i, ev := range events {
		t.At(testTime.Add(time.Duration(first+i)*250*time.Millisecond), nil)
		t.Apply(messages.EventNumber(first+i+1), ev)
	}
	return t
}

// The rows of the stories are those of the files in testdata.
func TestTimelineTellsTheStory(t *testing.T) {
	for path, events := range map[string][]messages.Event{"testdata/timeline.txt": story1, "testdata/timeline-steered.txt": story2} {
		var b strings.Builder
		for _, r := range timelineOf(0, events).Rows() {
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(append(line, '\n'))
		}
		if *update {
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || b.String() != string(want) {
			t.Errorf("%s: error %v, or a difference (run with -update and review it)\ngot\n%swant\n%s", path, err, b.String(), want)
		}
	}
}

// row returns the row that begins with event n.
func (t *Timeline) row(n messages.EventNumber) Row {
	for _, r := range t.Rows() {
		if r.N == n {
			return r
		}
	}
	return Row{}
}

// A call waits from the request for approval to the decision, and its turn as long as it is paused.
func TestTimelineWaits(t *testing.T) {
	events := []messages.Event{
		messages.InputAccepted{Input: "u1", Disposition: messages.Queued},
		messages.AgentActivated{Epoch: 2, Node: "n1", Host: "h1"},
		messages.TurnStarted{Turn: "t3", Inputs: []string{"u1"}},
		messages.ToolRequested{Turn: "t3", Step: 1, Call: "c1", Tool: "pay", Arguments: "{}"},
		messages.ApprovalRequested{Turn: "t3", Call: "c1", Tool: "pay", Arguments: "{}"},
		messages.TurnPaused{Turn: "t3", Reason: "approval", Calls: []messages.CallID{"c1"}},
		messages.CommandNoop{},
		messages.ApprovalGranted{Turn: "t3", Call: "c1", Tool: "pay", By: messages.ByDecision},
		messages.TurnResumed{Turn: "t3"},
		messages.ToolStarted{Turn: "t3", Call: "c1", Tool: "pay", Attempt: 1},
		messages.AgentActivated{Epoch: 3, Node: "n2"},
		messages.ToolUnknown{Turn: "t3", Call: "c1", Reason: "the process ended while it ran"},
	}
	const part = 250 * time.Millisecond
	now := testTime.Add(20 * part)
	line := timelineOf(0, events)
	for _, c := range []struct {
		n      messages.EventNumber
		status string
		events []messages.EventNumber
		parent messages.EventNumber
		waited time.Duration
		open   bool
		node   string
	}{
		{n: 1, status: "queued", events: []messages.EventNumber{1, 3}, waited: 2 * part},
		{n: 2, status: "epoch 2", events: []messages.EventNumber{2}, node: "n1"},
		{n: 3, status: "running", events: []messages.EventNumber{3, 6, 9}, waited: 3 * part, open: true, node: "n1"},
		{n: 4, status: "unknown", events: []messages.EventNumber{4, 5, 8, 10, 12}, parent: 3, waited: (3 + 9) * part, open: true, node: "n1"},
		{n: 5, status: "granted", events: []messages.EventNumber{5, 8}, parent: 4, waited: 3 * part, node: "n1"},
		{n: 11, status: "epoch 3", events: []messages.EventNumber{11}, node: "n2"},
	} {
		r := line.row(c.n)
		if r.Status != c.status || !slices.Equal(r.Events, c.events) || r.Parent != c.parent || r.Waited(now) != c.waited || r.Open != c.open || r.Node != c.node {
			t.Errorf("row %d: got %+v, waited %v\nwant %+v", c.n, r, r.Waited(now), c)
		}
	}
	if got, want := line.row(11).Text, "under way: tool pay({})"; got != want {
		t.Errorf("takeover: got %q, want %q", got, want)
	}
	if got := len(line.Rows()); got != 6 {
		t.Errorf("got %d rows, want 6: %+v", got, line.Rows())
	}
}

// The texts of a row are bounded, whatever the events hold.
func TestTimelineIsBounded(t *testing.T) {
	long := strings.Repeat("é", MaxPreview)
	for _, r := range timelineOf(0, []messages.Event{
		messages.InputAccepted{Input: "u1", Disposition: messages.Queued, Content: messages.TextContent(long)},
		messages.TurnStarted{Turn: "t2"},
		messages.ModelRequested{Turn: "t2", Call: "m", Model: long},
		messages.ModelCompleted{Turn: "t2", Call: "m", Items: []messages.Item{messages.Text("assistant", long)}},
		messages.ToolRequested{Turn: "t2", Call: "c", Tool: "f", Arguments: long},
		messages.ToolCompleted{Turn: "t2", Call: "c", Output: long},
		messages.StatePatched{Patch: json.RawMessage(long), Reason: long},
		messages.TurnCompleted{Turn: "t2", Output: long},
	}).Rows() {
		if len(r.Title) > MaxPreview || len(r.Text) > MaxPreview || r.Title == "" {
			t.Errorf("row %d has a title of %d bytes and a text of %d", r.N, len(r.Title), len(r.Text))
		}
	}
}

// The rows that change from event to event are those of the whole, and a fold that begins later has
// the same rows from there on.
func TestTimelineInParts(t *testing.T) {
	for seed := range uint64(30) {
		events := randomStory(seed, 120)
		whole := timelineOf(0, events).Rows()
		live, rows := new(Timeline), make(map[messages.EventNumber]Row)
		given := make(map[string]Row) // as they were
		for i, ev := range events {
			live.At(testTime.Add(time.Duration(i)*250*time.Millisecond), nil)
			live.Apply(messages.EventNumber(i+1), ev)
			for _, r := range live.Changed() {
				rows[r.N] = r
				given[fmt.Sprintf("%+v", r)] = r
			}
		}
		for was, is := range given {
			if now := fmt.Sprintf("%+v", is); now != was {
				t.Fatalf("seed %d, a row has changed in the hands of its reader\ngot  %s\nwant %s", seed, now, was)
			}
		}
		for _, want := range whole {
			if got := rows[want.N]; !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, row %d as it changed\ngot  %+v\nwant %+v", seed, want.N, got, want)
			}
		}
		for _, from := range []int{1, 40, 90} {
			later := timelineOf(from, events[from:]).Rows()
			rest := slices.DeleteFunc(slices.Clone(whole), func(r Row) bool { return r.N <= messages.EventNumber(from) })
			if len(rest) != len(later) {
				t.Fatalf("seed %d from %d: got %d rows, want %d", seed, from, len(later), len(rest))
			}
			for i := range rest {
				if rest[i].Parent <= messages.EventNumber(from) {
					rest[i].Parent = 0
				}
				if !reflect.DeepEqual(later[i], rest[i]) {
					t.Fatalf("seed %d from %d\ngot  %+v\nwant %+v", seed, from, later[i], rest[i])
				}
			}
		}
	}
}
