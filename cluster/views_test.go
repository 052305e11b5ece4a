package cluster_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/actors/turn/turntest"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

var update = flag.Bool("update", false, "rewrite the golden files of testdata/views and testdata/wire; read the diff")

// TestViews reads every view of every story of the turn machine as a client does,
// as of many events and at the end, and compares the JSON with testdata/views. The
// node serves none of the stories' kinds, so it answers from the log and changes
// nothing.
func TestViews(t *testing.T) {
	w := newWorld(t)
	log := w.openLog()
	var logs []storyLog
	for _, file := range turntest.Files(t, "../actors/turn/testdata") {
		a := storyAgent(file.Name)
		if frames := turntest.Play(t, a, file.Text).Frames; len(frames) > 0 {
			logs = append(logs, w.store(log, a, frames))
		}
		if gone := storyAgent("gone"); file.Name == "delete" {
			logs = append(logs, w.store(log, gone, upToTombstone(turntest.Play(t, gone, file.Text).Frames)))
		}
	}
	n := w.node(readsOnly)
	w.each(len(logs), func(i int) {
		w.golden("views/"+logs[i].agent.Key, w.viewsOf(n, logs[i]))
	})
	w.golden("views/all", w.viewsOfAll(n))
	if files, err := filepath.Glob("testdata/views/*.txt"); err != nil || len(files) != len(logs)+1 {
		t.Errorf("testdata/views has %d files, %v: want one for each of %d agents, and all.txt", len(files), err, len(logs))
	}
	for _, s := range logs {
		if tail, err := log.Head(w.ctx, s.agent); err != nil || tail != s.tail {
			t.Errorf("agent %s ends with %+v, %v: want %+v, because nothing acts for it", s.agent, tail, err, s.tail)
		}
	}
}

// storyAgent is the agent of a story.
func storyAgent(name string) messages.AgentID {
	return messages.AgentID{Tenant: messages.DefaultTenant, Kind: "test", Key: name}
}

// upToTombstone returns the frames of an agent that is deleted and not created again.
func upToTombstone(frames []*messages.Frame) []*messages.Frame {
	return frames[:slices.IndexFunc(frames, eventlog.Ends)+1]
}

// readsOnly is a node that serves none of the kinds that a test has stored.
func readsOnly(c *cluster.Config) {
	c.Agents = []actors.Definition{{Kind: "reader", Model: "test/model"}}
}

// storyLog is the log of an agent that a story has made.
type storyLog struct {
	agent messages.AgentID
	tail  eventlog.Position
	// asOf are the events as of which views are read: the last one of each frame
	// that changes the agent's phase or has an event of a type that is new to the
	// story.
	asOf []messages.EventNumber
}

func (w *world) openLog() *natslog.Log {
	w.t.Helper()
	nc, err := natslog.Connect(w.url, unhurried)
	w.ok(err)
	w.t.Cleanup(nc.Close)
	log, err := natslog.Open(w.ctx, natslog.Config{Conns: []*nats.Conn{nc}, Logger: w.log.Logger()})
	w.ok(err)
	return log
}

// store appends frames of an agent, chained and with the headers that its owner
// would write, except that they report no work and no timer: the node would take
// the agent over.
func (w *world) store(log eventlog.Appender, a messages.AgentID, frames []*messages.Frame) storyLog {
	w.t.Helper()
	s := storyLog{agent: a}
	epoch, state := messages.Epoch(1), new(turn.State)
	var phase messages.AgentPhase
	seen := make(map[string]bool)
	for _, f := range frames {
		if taken, ok := f.Events[0].(messages.AgentActivated); ok {
			epoch = taken.Epoch
		}
		f.Epoch, f.Prev, f.PrevDigest = epoch, s.tail.Frame, s.tail.Digest
		raw, err := messages.EncodeFrame(a, f)
		w.ok(err)
		state.Apply(f)
		sum := actors.Summarize(state)
		sum.Open, sum.Due = false, time.Time{}
		s.tail, err = eventlog.Commit(w.ctx, log, eventlog.Entry{Agent: a, Expect: s.tail, Frame: f, Bytes: raw, Summary: sum})
		w.ok(err)
		if addsType(seen, f) || sum.Phase != phase {
			s.asOf = append(s.asOf, f.Last())
		}
		phase = sum.Phase
	}
	return s
}

// addsType adds the types of a frame's events to seen and reports whether one is
// new.
func addsType(seen map[string]bool, f *messages.Frame) (added bool) {
	for _, ev := range f.Events {
		if !seen[ev.EventType()] {
			seen[ev.EventType()], added = true, true
		}
	}
	return added
}

// each calls do for 0 to n-1, several at a time.
func (w *world) each(n int, do func(i int)) {
	var running sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range n {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			do(i)
		})
	}
	running.Wait()
}

// Views of an agent: those that are asked as of each frame, and all at the end.
var (
	viewsAsOf = []string{"show", "history", "state", "turns", "usage", "approvals", "children", "timers"}
	viewsLast = []string{"show", "history", "state", "turns", "usage", "approvals", "children", "timers", "effects", "events", "replay", "timeline", "inventory"}
)

// viewsOf renders the views of an agent: the lines that change from one event to
// the next, then all lines of all views at the end. Each line is the view, the
// number of the line, and the JSON.
func (w *world) viewsOf(n *cluster.Node, s storyLog) string {
	var out strings.Builder
	before := make(map[string][]string)
	for _, at := range s.asOf {
		fmt.Fprintf(&out, "== as of event %d\n", at)
		for _, view := range viewsAsOf {
			now := w.lines(n, s.agent, messages.Query{View: view, At: at})
			writeChanges(&out, view, before[view], now)
			before[view] = now
		}
		out.WriteString("\n")
	}
	out.WriteString("== at the end\n")
	for _, view := range viewsLast {
		lines := w.lines(n, s.agent, messages.Query{View: view})
		if view == "replay" {
			withoutText(lines)
		}
		writeChanges(&out, view, nil, lines)
	}
	writeChanges(&out, "remembered", nil, w.lines(n, s.agent, messages.Query{View: "approvals", Remembered: true}))
	return out.String()
}

// withoutText removes the text of each line of a replay that is no more than its
// other fields, one below the other.
func withoutText(lines []string) {
	for i, line := range lines {
		var c struct {
			N                           int
			At                          time.Time
			Type, Summary, Text         string
			Queue, Turn, History, State []string
		}
		if json.Unmarshal([]byte(line), &c) != nil {
			continue
		}
		text := fmt.Sprintf("%6d  %s  %-16s  %s\n", c.N, c.At.Format("2006-01-02 15:04:05.000"), c.Type, c.Summary)
		for _, change := range slices.Concat(c.Queue, c.Turn, c.History) {
			text += "        " + change + "\n"
		}
		for _, change := range c.State {
			text += "        state: " + change + "\n"
		}
		if c.Text == text {
			lines[i] = line[:strings.LastIndex(line, `,"text":`)] + "}"
		}
	}
}

// writeChanges writes the lines of a view that were not in it before, and a dash
// in place of the first one that is missing if the view has become shorter.
func writeChanges(out *strings.Builder, view string, before, now []string) {
	for i, line := range now {
		if !slices.Contains(before, line) {
			fmt.Fprintf(out, "%s %d %s\n", view, i+1, line)
		}
	}
	if len(now) < len(before) {
		fmt.Fprintf(out, "%s %d -\n", view, len(now)+1)
	}
}

var (
	storedSeq = regexp.MustCompile(`"seq":[1-9]\d*`)
	ownedBy   = regexp.MustCompile(`"owner":"[^"]*",`)
	digests   = regexp.MustCompile(`\b([0-9a-f]{8})[0-9a-f]{56}\b`)
)

// lines reads a view of an agent.
func (w *world) lines(n *cluster.Node, a messages.AgentID, q messages.Query) (lines []string) {
	for line, err := range n.Client().Query(w.ctx, a.String(), q) {
		if err != nil {
			return append(lines, refusal(err))
		}
		lines = append(lines, masked(n, string(line)))
	}
	return lines
}

// refusal is the code and the text of an error.
func refusal(err error) string { return fmt.Sprintf("refused %s: %v", codeOf(err), err) }

// masked is a line without what differs from one store to the next, sequences and
// the id of the node, and with short digests. It has no owner: on a busy machine a lease
// may lapse for a moment.
func masked(n *cluster.Node, line string) string {
	line = ownedBy.ReplaceAllString(line, "")
	line = storedSeq.ReplaceAllString(line, `"seq":"SEQ"`)
	line = digests.ReplaceAllString(line, "$1…")
	return strings.ReplaceAll(line, n.ID(), "NODE")
}

// golden compares a text with a file of testdata, or writes it with -update.
func (w *world) golden(name, got string) {
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			w.t.Error(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		w.t.Error(err)
		return
	}
	if got != string(want) {
		w.t.Errorf("%s: %s", path, turntest.Difference(string(want), got))
	}
}
