package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// Lines of Reprise-State of every version, and some that cannot be read: those
// make their frame foreign to a follower.
func TestStateLines(t *testing.T) { // A84
	due := time.Unix(0, 1_767_225_700_000_000_000).UTC()
	lines := []struct {
		line string
		want eventlog.Summary
	}{
		{"idle - - -", eventlog.Summary{Phase: messages.PhaseIdle}}, // v0.1.0
		{"running t5 open 1767225700000000000", eventlog.Summary{Phase: messages.PhaseRunning, Turn: "t5", Open: true, Due: due}},
		{"idle - - - 0", eventlog.Summary{Phase: messages.PhaseIdle}},
		{"idle - replies - 0", eventlog.Summary{Phase: messages.PhaseIdle, Replies: true}},
		{"running t5 open+replies - 0", eventlog.Summary{Phase: messages.PhaseRunning, Turn: "t5", Open: true, Replies: true}},
		{"paused t5 - 1767225700000000000 2", eventlog.Summary{Phase: messages.PhasePaused, Turn: "t5", Due: due, Waiting: 2}},
		{"paused t5 - - 1 added-later", eventlog.Summary{Phase: messages.PhasePaused, Turn: "t5", Waiting: 1}},
		{"idle - - - 0 failed:model", eventlog.Summary{Phase: messages.PhaseIdle, Failed: "model"}},
		{"idle - - - 0 failed:model added-later", eventlog.Summary{Phase: messages.PhaseIdle, Failed: "model"}},
		{"paused t5 - - -1", eventlog.Summary{}},
		{"paused t5 - - two", eventlog.Summary{}},
		{"paused t5 -", eventlog.Summary{}},
	}
	l, c := open(t, 1)
	js := jetStream(t, c)
	for i, each := range lines {
		e := logtest.Entry(t, logtest.Agent(fmt.Sprint(i)), eventlog.Position{})
		m := &nats.Msg{Subject: c.Subjects.Log(e.Agent), Data: e.Bytes, Header: natslog.FrameHeader(e)}
		m.Header.Set("Reprise-State", each.line)
		if _, err := js.PublishMsg(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		if head := newestHead(t, l, e.Agent); head.Summary != each.want || head.Foreign != (each.want.Phase == "") {
			t.Errorf("%q reads as %+v, foreign: %t", each.line, head.Summary, head.Foreign)
		}
	}
}

// newestHead is the newest head of an agent that a new follower receives.
func newestHead(t *testing.T, l *natslog.Log, a messages.AgentID) (newest eventlog.Head) {
	t.Helper()
	for head, err := range l.Follow(context.Background(), a.Partition()) {
		if err != nil {
			t.Fatal(err)
		}
		if head.Agent == (messages.AgentID{}) {
			break
		}
		if head.Agent == a {
			newest = head.Head
		}
	}
	return newest
}

// A frame whose header says something else than it holds is damage; one whose header
// a later version has made longer is not.
func TestFrameLines(t *testing.T) { // A29, A84
	l, c := open(t, 1)
	js := jetStream(t, c)
	for i, change := range []struct {
		field int
		to    string
		sound bool
	}{{0, "1", true}, {1, "another", false}, {2, "9", false}, {3, "2", false}, {4, "9", false}, {5, "1767225700000000000", true}, {5, "1767225700000000000 added-later", true}, {5, "noon", false}} {
		e := logtest.Entry(t, logtest.Agent(fmt.Sprint(i)), eventlog.Position{})
		m := &nats.Msg{Subject: c.Subjects.Log(e.Agent), Data: e.Bytes, Header: natslog.FrameHeader(e)}
		fields := strings.Fields(m.Header.Get("Reprise-Frame"))
		fields[change.field] = change.to
		m.Header.Set("Reprise-Frame", strings.Join(fields, " "))
		if _, err := js.PublishMsg(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		for rec, err := range l.Read(context.Background(), e.Agent, eventlog.Range{}) {
			var damage *eventlog.DamageError
			if sound := err == nil; sound != change.sound || !sound && !errors.As(err, &damage) {
				t.Errorf("%v reads as %+v, %v", fields, rec, err)
			}
		}
	}
}
