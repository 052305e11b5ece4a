// Package logtest is the suite that every event log passes, and [Faulty], a
// log whose answers get lost. [Run] it from the tests of a log.
package logtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Opened is a fresh, empty log and what the suite needs beside it.
type Opened struct {
	eventlog.Store
	// Feed reads what Log holds.
	Feed eventlog.Feed
	// Inject stores the entry's bytes with the headers of its frame, without
	// fence or checks; with foreign, without any header. Tests that need it are
	// skipped if it is nil.
	Inject func(t *testing.T, e eventlog.Entry, foreign bool)
	// Encrypted reports that the log stores other bytes than those it is given. Tests
	// that compare them are skipped.
	Encrypted bool
	// Emptied says that the log has held something before: its shards end where they
	// did then.
	Emptied bool
	// Tamper flips a bit of a stored blob. Tests that need it are skipped if it is
	// nil.
	Tamper func(t *testing.T, a messages.AgentID, b messages.Blob)
}

// Run runs the suite. open is called once for each test and returns a log that
// no other test sees.
func Run(t *testing.T, open func(t *testing.T) Opened) {
	for _, suite := range []map[string]func(*testing.T, Opened){appending, unknown, reading, resuming, readingAhead, purging, damage, following, sharding, definitions, blobs, snapshots} {
		for name, test := range suite {
			t.Run(name, func(t *testing.T) { test(t, open(t)) })
		}
	}
}

// Entry makes an entry that follows tail, of the events or of a single small
// one. Its frame's id is new; its epoch is tail's, or 1.
func Entry(t testing.TB, a messages.AgentID, tail eventlog.Position, events ...messages.Event) eventlog.Entry {
	t.Helper()
	if len(events) == 0 {
		events = []messages.Event{messages.CommandNoop{Command: "abort", Reason: "test"}}
	}
	return Encode(t, eventlog.Entry{
		Agent: a, Expect: tail,
		Frame: &messages.Frame{
			ID: messages.FrameID(ulid.Make().String()), Epoch: max(1, tail.Epoch), First: tail.Last + 1,
			Prev: tail.Frame, PrevDigest: tail.Digest, Events: events,
			Time: time.Unix(1_767_225_600, int64(tail.Last)), // any; no test depends on the clock
		},
		Summary: eventlog.Summary{Phase: messages.PhaseIdle},
	})
}

// Encode returns e with the bytes of its frame.
func Encode(t testing.TB, e eventlog.Entry) eventlog.Entry {
	t.Helper()
	b, err := messages.EncodeFrame(e.Agent, e.Frame)
	if err != nil {
		t.Fatalf("encode a frame of %s: %v", e.Agent, err)
	}
	e.Bytes = b
	return e
}

// Agent is a test agent by its key.
func Agent(key string) messages.AgentID {
	return messages.AgentID{Tenant: messages.DefaultTenant, Kind: "test", Key: key}
}

// Neighbours are n agents of one partition.
func Neighbours(n int) []messages.AgentID {
	all := []messages.AgentID{Agent("a")}
	for i := 0; len(all) < n; i++ {
		if a := Agent(fmt.Sprintf("a%d", i)); a.Partition() == all[0].Partition() {
			all = append(all, a)
		}
	}
	return all
}

// grow appends n frames of one event and returns the tails after each.
func grow(t testing.TB, log eventlog.Log, a messages.AgentID, tail eventlog.Position, n int) []eventlog.Position {
	t.Helper()
	tails := make([]eventlog.Position, 0, n)
	for range n {
		tail = appended(t, log, Entry(t, a, tail))
		tails = append(tails, tail)
	}
	return tails
}

func appended(t testing.TB, log eventlog.Appender, e eventlog.Entry) eventlog.Position {
	t.Helper()
	tail, err := log.Append(context.Background(), e)
	if err != nil {
		t.Fatalf("append to %s: %v", e.Agent, err)
	}
	return tail
}

// collect reads the agent to the end or the first error.
func collect(log eventlog.Reader, a messages.AgentID, from messages.EventNumber) (all []eventlog.Recorded, err error) {
	for r, err := range log.Read(context.Background(), a, eventlog.From(from)) {
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

// wantFrames fails unless the agent's log is exactly these frames.
func wantFrames(t testing.TB, log eventlog.Log, a messages.AgentID, want ...messages.FrameID) {
	t.Helper()
	all, err := collect(log, a, 1)
	if err != nil {
		t.Fatalf("read %s: %v", a, err)
	}
	var got []messages.FrameID
	for _, r := range all {
		got = append(got, r.Frame.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%s has frames %v, want %v", a, got, want)
	}
}

func wantTail(t testing.TB, log eventlog.Log, a messages.AgentID, want eventlog.Position) {
	t.Helper()
	got, err := log.Head(context.Background(), a)
	if err != nil {
		t.Fatalf("tail of %s: %v", a, err)
	}
	if got != want {
		t.Fatalf("tail of %s is\n%+v, want\n%+v", a, got, want)
	}
}

// large is an event of about n bytes.
func large(n int) messages.Event {
	return messages.CommandNoop{Command: "abort", Reason: strings.Repeat("x", n)}
}
