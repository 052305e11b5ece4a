package gateway

import (
	"fmt"
	"slices"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// lived writes many turns of till, so that each view has several pages, and returns the number of
// frames.
func (h *house) lived() (frames int) {
	h.t.Helper()
	for i := range 1500 {
		input, turn, call := fmt.Sprint("u", i), messages.TurnID(fmt.Sprint("t", i)), messages.CallID(fmt.Sprint("m", i))
		h.wrote(till, messages.PhaseRunning, accepted(input, messages.Started, turn), messages.TurnStarted{Turn: turn, Inputs: []string{input}, MaxSteps: 5}, asks(turn, call, input))
		h.wrote(till, messages.PhaseIdle, calling(turn, call, "hi"), messages.ToolRequested{Turn: turn, Call: "c", Tool: "refund", Arguments: "{}"},
			messages.ToolCompleted{Turn: turn, Call: "c", Output: "ok"}, messages.TurnCompleted{Turn: turn, Inputs: []string{input}})
		frames += 2
	}
	return frames
}

// from is the lines of a view from one on, as a reader gets them who has no cursor.
func (h *house) from(view string, from, limit int) (list []string) {
	h.t.Helper()
	for line, err := range h.client.Query(h.ctx, "support/till", messages.Query{View: view, From: messages.EventNumber(from), Limit: limit}) {
		h.ok(err)
		list = append(list, string(line))
	}
	return list
}

// readOnce reads a view of several pages, for which the log is to be read once.
func (h *house) readOnce(view string, written int) (lines []string) {
	h.t.Helper()
	h.frames.Store(0)
	lines = h.view(view)
	if read := int(h.frames.Load()); len(lines) <= defaultLimit || read > written+written/2 {
		h.t.Fatalf("%s: %d frames were read for %d lines, %d are written", view, read, len(lines), written)
	}
	return lines
}

// A long view is read once, however many pages it has, and a page that is asked for
// by itself says the same.
func TestPagesGoOn(t *testing.T) {
	h := newHouse(t, nil)
	written := h.lived()
	for _, view := range []string{"events", "history", "turns", "usage", "effects", "replay"} {
		whole := h.readOnce(view, written)
		var paged []string
		for len(paged) < len(whole) {
			next := h.from(view, len(paged)+1, 700)
			if len(next) == 0 {
				break
			}
			paged = append(paged, next...)
		}
		if !slices.Equal(paged, whole) {
			t.Errorf("%s: %d lines with cursors, %d without", view, len(whole), len(paged))
		}
	}
}

// What is kept for a reader is for the same view of the same agent, once, and only
// so much is.
func TestCursorIsForItsReader(t *testing.T) {
	var b cursors
	other := messages.AgentID{Tenant: "default", Kind: "support", Key: "other"}
	turns := messages.Query{View: "turns", From: 7, Limit: 3, Cursor: "c"}
	first := b.keep(viewOf(till, turns), 1)
	for _, of := range []string{viewOf(other, turns), viewOf(till, messages.Query{View: "usage"}), viewOf(till, messages.Query{View: "turns", At: 3})} {
		if got := b.take(of, first); got != nil {
			t.Errorf("%s was given %v", of, got)
		}
	}
	if got := b.take(viewOf(till, messages.Query{View: "turns", From: 9}), first); got != 1 {
		t.Errorf("its reader was given %v", got)
	}
	if got := b.take(viewOf(till, turns), first); got != nil {
		t.Errorf("then %v", got)
	}
	cursors := make([]string, 0, cursorsAtOnce+1)
	for i := range cursorsAtOnce + 1 {
		cursors = append(cursors, b.keep("v", i))
	}
	if got := b.take("v", cursors[0]); got != nil {
		t.Errorf("the oldest is still there: %v", got)
	}
	if got := b.take("v", cursors[1]); got != 1 {
		t.Errorf("the one after it: %v", got)
	}
}

// An agent that is deleted between two pages of its past is read from where its
// past begins now.
func TestPageOfTheDeleted(t *testing.T) {
	h := newHouse(t, nil)
	h.lived()
	read := 0
	for _, err := range h.client.Query(h.ctx, "support/till", messages.Query{View: "events"}) {
		if read++; read == 1 {
			h.wrote(till, messages.PhaseIdle, messages.AgentDeleted{})
			h.ok(h.log.Purge(h.ctx, till, h.tails[till].Seq))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if read <= 1 {
		t.Errorf("%d lines", read)
	}
}
