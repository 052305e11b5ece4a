package actors_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// A deep check compares the heads of agents with what their events fold to.
func TestCheckHeads(t *testing.T) { // A29
	log := memlog.New()
	agent := func(key string, change func(*eventlog.Summary)) messages.AgentID {
		t.Helper()
		a := logtest.Agent(key)
		e := logtest.Entry(t, a, eventlog.Position{}, messages.AgentCreated{Agent: a.Full()},
			messages.InputAccepted{Input: "u1", Disposition: "started", Turn: "t2", Policy: messages.PolicyQueue},
			messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}, MaxSteps: 20})
		e.Summary = eventlog.Summary{Phase: messages.PhaseRunning, Turn: "t2", Open: true}
		change(&e.Summary)
		if _, err := log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		return a
	}
	agent("right", func(*eventlog.Summary) {})
	wrong := map[messages.AgentID]bool{
		agent("phase", func(s *eventlog.Summary) { s.Phase = messages.PhaseIdle }): true,
		agent("owes", func(s *eventlog.Summary) { s.Open = false }):                true,
		agent("turn", func(s *eventlog.Summary) { s.Turn = "t9" }):                 true,
	}
	examine := func(o doctor.Options, log doctor.Log) (found []doctor.Finding) {
		t.Helper()
		d := doctor.New(doctor.Config{Log: log, Checks: []doctor.Check{actors.CheckHeads(log)}})
		for shard := range d.Shards() {
			if _, err := d.Shard(t.Context(), shard, o, func(f doctor.Finding) { found = append(found, f) }, nil); err != nil {
				t.Fatal(err)
			}
		}
		return found
	}
	if found := examine(doctor.Options{}, log); len(found) != 0 {
		t.Errorf("without Deep: got findings %+v, want none", found)
	}
	found := examine(doctor.Options{Deep: true}, log)
	for _, f := range found {
		if !wrong[f.Agent] || f.Check != "head" || f.Event != 3 || !strings.Contains(f.Detail, "its events make it running in turn t2, with open work") || f.Remedy == "" {
			t.Errorf("got the finding %+v, want a wrong head at event 3 with a remedy", f)
		}
	}
	if len(found) != len(wrong) {
		t.Errorf("got %d findings, want %d", len(found), len(wrong))
	}
	// An agent that appended since its log was read is not reported.
	if found := examine(doctor.Options{Deep: true}, ahead{log, t}); len(found) != 0 {
		t.Errorf("of an agent that appended meanwhile: got findings %+v, want none", found)
	}
}

// ahead is a log whose agents append before each bounded read.
type ahead struct {
	*memlog.Log
	t *testing.T
}

func (l ahead) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	tail, err := l.Head(ctx, a)
	if err == nil {
		_, err = l.Append(ctx, logtest.Entry(l.t, a, tail))
	}
	if err != nil {
		l.t.Error(err)
	}
	return l.Log.Read(ctx, a, r)
}
