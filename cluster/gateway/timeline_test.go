package gateway

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// TestTimelineIsCut asks for parts of a timeline.
func TestTimelineIsCut(t *testing.T) {
	h := newHouse(t, nil)
	for _, turn := range []messages.TurnID{"t2", "t6", "t10"} {
		in := "u" + string(turn)
		h.wrote(till, messages.PhaseIdle, accepted(in, messages.Started, turn), messages.TurnStarted{Turn: turn, Inputs: []string{in}},
			messages.ModelRequested{Turn: turn, Step: 1, Call: "m" + messages.CallID(turn), Inputs: []string{in}},
			messages.TurnFailed{Turn: turn, Inputs: []string{in}, Reason: "model"})
	}
	for _, c := range []struct {
		q    messages.Query
		want string
	}{
		{messages.Query{}, "1 input, 2 turn, 3 model, 5 input, 6 turn, 7 model, 9 input, 10 turn, 11 model"},
		{messages.Query{From: 6}, "6 turn, 7 model, 9 input, 10 turn, 11 model"},
		{messages.Query{From: 6, Limit: 2}, "6 turn, 7 model"},
		{messages.Query{At: 3}, "1 input, 2 turn, 3 model"},
		{messages.Query{Turn: "t6"}, "5 input, 6 turn, 7 model"},
		{messages.Query{Turn: "t7"}, ""},
		{messages.Query{Tail: 3}, "10 turn, 11 model"},
		{messages.Query{Tail: 7}, "6 turn, 7 model, 9 input, 10 turn, 11 model"},
		{messages.Query{Tail: 3, At: 7}, "5 input, 6 turn, 7 model"},
		{messages.Query{Tail: 3, From: 6}, "6 turn, 7 model, 9 input, 10 turn, 11 model"}, // a later page
		{messages.Query{Tail: 100}, "1 input, 2 turn, 3 model, 5 input, 6 turn, 7 model, 9 input, 10 turn, 11 model"},
		{messages.Query{At: 13}, "agent support/till has 12 events: there is no event 13"},
		{messages.Query{From: 12}, ""},
		{messages.Query{From: 13}, "agent support/till has 12 events: there is no event 13"},
		{messages.Query{Follow: true, At: 3}, "view timeline cannot be followed as of an earlier event: leave at out"},
		{messages.Query{Tool: "refund"}, "view timeline takes at, from, tail, follow, turn or cursor: tool is not among them"},
	} {
		c.q.View = "timeline"
		if got := strings.Join(h.fields(c.q, "n", "kind"), ", "); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.q, got, c.want)
		}
	}
	for _, q := range []messages.Query{{View: "timeline"}, {View: "timeline", Tail: 5}, {View: "timeline", Follow: true}} {
		for _, err := range h.client.Query(h.ctx, "support/none", q) {
			if messages.AsError(err).Code != messages.NotFound {
				t.Errorf("%+v of no agent: %v", q, err)
			}
		}
	}
}

// TestTimelineTail reads as little of a long log as the newest rows need.
func TestTimelineTail(t *testing.T) {
	h := newHouse(t, nil)
	written := h.lived()
	whole := h.view("timeline")
	h.frames.Store(0)
	var tail []string
	for line, err := range h.client.Query(h.ctx, "support/till", messages.Query{View: "timeline", Tail: 70}) {
		h.ok(err)
		tail = append(tail, string(line))
	}
	if read := int(h.frames.Load()); read > 30 || len(tail) < 30 {
		t.Errorf("%d of %d frames were read for %d rows", read, written, len(tail))
	}
	if !slices.Equal(tail, whole[len(whole)-len(tail):]) {
		t.Errorf("the newest rows differ from those of the whole\ngot  %s\nwant %s", tail, whole[len(whole)-len(tail):])
	}
}

// followedRows reads a followed timeline until done, which gets its rows as far as they are
// known.
func (h *house) followedRows(from messages.EventNumber, done func(rows map[messages.EventNumber]projections.Row) bool) {
	h.t.Helper()
	rows := make(map[messages.EventNumber]projections.Row)
	for line, err := range h.client.Query(h.ctx, "support/till", messages.Query{View: "timeline", Follow: true, From: from}) {
		h.ok(err)
		var r projections.Row
		h.ok(json.Unmarshal(line, &r))
		if rows[r.N] = r; done(rows) {
			return
		}
	}
	h.t.Fatal("the timeline ended")
}

// TestTimelineIsFollowed reads a timeline of several pages and the rows that change then. The log is
// read once if what the pages share is kept, and the rows are the same if it is not.
func TestTimelineIsFollowed(t *testing.T) {
	for name, forget := range map[string]bool{"kept": false, "forgotten": true} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil)
			written := h.lived()
			whole := len(h.view("timeline"))
			h.frames.Store(0)
			added, turn := false, messages.EventNumber(0)
			h.followedRows(0, func(rows map[messages.EventNumber]projections.Row) bool {
				if forget && len(rows)%700 == 0 {
					h.g.cursors.forget()
				}
				if len(rows) == whole && !added {
					added = true
					turn = h.wrote(till, messages.PhaseRunning, accepted("new", messages.Started, "tn"), messages.TurnStarted{Turn: "tn", Inputs: []string{"new"}}) + 1
					h.wrote(till, messages.PhaseIdle, messages.TurnAborted{Turn: "tn", Inputs: []string{"new"}, By: "abort"})
				}
				return rows[turn].Status == "aborted (abort)"
			})
			if read := int(h.frames.Load()); !forget && read > written+written/2 {
				t.Errorf("%d frames were read, %d are written", read, written)
			}
		})
	}
}

// TestFollowedFrom follows from an event on: rows that begin before come if they have changed.
func TestFollowedFrom(t *testing.T) {
	h := newHouse(t, nil)
	h.wrote(till, messages.PhaseIdle, accepted("u1", messages.Started, "t2"), messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}})
	h.wrote(till, messages.PhaseIdle, asks("t2", "m"), messages.TurnAborted{Turn: "t2", Inputs: []string{"u1"}, By: "abort"})
	h.followedRows(4, func(rows map[messages.EventNumber]projections.Row) bool {
		if _, early := rows[1]; early {
			t.Fatalf("row 1 has not changed since: %+v", rows)
		}
		return len(rows) == 2 && rows[2].Status == "aborted (abort)" && rows[3].Status == "lost"
	})
}

// forget drops all that is kept for readers.
func (b *cursors) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.kept {
		u.timer.Stop()
	}
	b.kept = nil
}
