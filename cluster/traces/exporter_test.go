package traces_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/traces"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// commits is an observer that counts what is handed on to it.
type commits struct {
	actors.Observer
	n int
}

func (c *commits) Committed(actors.Commit) { c.n++ }

// stage is an exporter, the log that it reads, and what of it is said.
type stage struct {
	t        *testing.T
	log      *memlog.Log
	exporter *traces.Exporter
	observer actors.Observer
	next     commits
	said     strings.Builder
}

func newStage(t *testing.T, url string, content bool) *stage {
	t.Helper()
	s := &stage{t: t, log: memlog.New()}
	sender, err := traces.NewSender(url, nil, traces.Resource{})
	if err != nil {
		t.Fatal(err)
	}
	s.exporter = traces.NewExporter(traces.ExporterConfig{Sender: sender, Log: s.log, Content: content, Logger: slog.New(slog.NewTextHandler(&s.said, nil))})
	s.observer = s.exporter.Observer(&s.next)
	return s
}

// commit appends a frame and has it observed.
func (s *stage) commit(a messages.AgentID, tail eventlog.Position, change func(*messages.Frame), events ...messages.Event) eventlog.Position {
	s.t.Helper()
	e := logtest.Entry(s.t, a, tail, events...)
	if change != nil {
		change(e.Frame)
		e = logtest.Encode(s.t, e)
	}
	tail, err := s.log.Append(s.t.Context(), e)
	if err != nil {
		s.t.Fatal(err)
	}
	s.observer.Committed(actors.Commit{Agent: a, Seq: tail.Seq, Frame: e.Frame})
	return tail
}

// turns commits a turn in two frames, and then one of an input that waited for its end.
func (s *stage) turns(a messages.AgentID, change func(*messages.Frame)) {
	s.t.Helper()
	tail := s.commit(a, eventlog.Position{}, change, messages.AgentCreated{}, messages.InputAccepted{Input: "u1", Content: messages.TextContent("question one")},
		messages.TurnStarted{Turn: "t3", Inputs: []string{"u1"}}, messages.InputAccepted{Input: "u2", Content: messages.TextContent("question two")})
	tail = s.commit(a, tail, change, messages.TurnCompleted{Turn: "t3", Inputs: []string{"u1"}, Output: "answer one"}, messages.TurnStarted{Turn: "t6", Inputs: []string{"u2"}})
	s.commit(a, tail, change, messages.TurnCompleted{Turn: "t6", Inputs: []string{"u2"}, Output: "answer two"})
}

// run sends what waits, and returns once it is sent.
func (s *stage) run() {
	ended, cancel := context.WithCancel(s.t.Context())
	cancel()
	s.exporter.Run(ended)
}

// view returns the spans that the log yields.
func (s *stage) view(a messages.AgentID, content bool) []projections.Span {
	s.t.Helper()
	fold := projections.Spans{Agent: a, Content: content}
	for rec, err := range s.log.Read(s.t.Context(), a, eventlog.Range{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		projections.Fold(rec.Frame, 0, &fold)
	}
	return fold.Take()
}

// TestExporter holds that what is sent when a turn ends is what the log yields for it later, with
// content only if that is wanted, and never for an encrypted agent.
func TestExporter(t *testing.T) {
	for name, c := range map[string]struct {
		content, encrypted bool
		want               int // texts that are sent
	}{
		"as usual":         {},
		"content":          {true, false, 4},
		"encrypted":        {true, true, 0},
		"encrypted, plain": {false, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			to := newCollector(t)
			s := newStage(t, to.URL, c.content)
			var change func(*messages.Frame)
			if c.encrypted {
				change = func(f *messages.Frame) { f.KeyID = "k" }
			}
			a := logtest.Agent("a")
			s.turns(a, change)
			s.run()
			want, got := s.view(a, c.content && !c.encrypted), to.spans()
			if len(got) != 2 || len(want) != 2 {
				t.Fatalf("%d spans were sent, %d are in the log: want 2", len(got), len(want))
			}
			for i := range got {
				if hex.EncodeToString(got[i].SpanId) != want[i].SpanID || len(got[i].Attributes) != len(want[i].Attributes) || got[i].EndTimeUnixNano != uint64(want[i].End.UnixNano()) {
					t.Errorf("sent %v, want %+v", got[i], want[i])
				}
			}
			sent, n := fmt.Sprint(got), 0
			for _, text := range []string{"question one", "question two", "answer one", "answer two"} {
				if strings.Contains(sent, text) {
					n++
				}
			}
			if n != c.want || s.next.n != 3 || s.exporter.Dropped() != 0 || s.exporter.Lost() != 0 {
				t.Errorf("%d texts were sent, %d commits handed on, %d turns dropped, %d spans lost", n, s.next.n, s.exporter.Dropped(), s.exporter.Lost())
			}
		})
	}
}

// TestExporterNotSampled holds that a trace that its caller does not sample is not sent.
func TestExporterNotSampled(t *testing.T) {
	to := newCollector(t)
	s := newStage(t, to.URL, false)
	s.turns(logtest.Agent("a"), func(f *messages.Frame) {
		for i, ev := range f.Events {
			if started, ok := ev.(messages.TurnStarted); ok {
				started.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
				f.Events[i] = started
			}
		}
	})
	s.run()
	if len(to.requests) != 0 || s.exporter.Dropped() != 0 {
		t.Errorf("%d requests were made, %d turns dropped", len(to.requests), s.exporter.Dropped())
	}
}

// TestExporterLoses holds that spans are counted which the collector does not take, and turns that are
// dropped where more wait than there is room for, and that a commit never waits for that.
func TestExporterLoses(t *testing.T) {
	to := newCollector(t, http.StatusBadRequest)
	s := newStage(t, to.URL, false)
	s.turns(logtest.Agent("a"), nil)
	s.run()
	if s.exporter.Lost() != 2 || !strings.Contains(s.said.String(), "HTTP 400") {
		t.Errorf("%d spans were lost; said was %s", s.exporter.Lost(), &s.said)
	}
	const room = 4096
	ends := &messages.Frame{First: 1, Events: []messages.Event{messages.TurnCompleted{Turn: "t1"}}}
	for range room + 7 {
		s.observer.Committed(actors.Commit{Agent: logtest.Agent("a"), Frame: ends})
	}
	if s.exporter.Dropped() != 7 || s.next.n != 3+room+7 {
		t.Errorf("%d turns were dropped, %d commits handed on", s.exporter.Dropped(), s.next.n)
	}
	s.run()
	if said := s.said.String(); !strings.Contains(said, "turns=7 dropped=7") || !strings.Contains(said, "4096 turns wait") {
		t.Errorf("said was %s", said)
	}
}
