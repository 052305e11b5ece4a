package natslog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// trio is a log with three copies, each on a server that is a process of its own.
type trio struct {
	*store
	all    []*process
	js     jetstream.JetStream
	stream string
}

func newTrio(t *testing.T, a messages.AgentID) *trio {
	t.Helper()
	all, urls := processes(t)
	nc, err := natslog.Connect(urls, nats.Timeout(time.Minute), nats.ErrorHandler(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	w := &trio{store: &store{t: t, nc: nc}, all: all, stream: streamOf(a)}
	if w.log, err = natslog.Open(t.Context(), natslog.Config{Conns: []*nats.Conn{nc}, Replicas: 3, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	if w.js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	return w
}

// settled waits until every copy of the stream is current, and returns its leader and one
// that is not.
func (w *trio) settled() (leader, follower *process) {
	w.t.Helper()
	w.eventually("every copy is current", func(info *jetstream.StreamInfo) bool {
		return info.Cluster.Leader != "" && len(info.Cluster.Replicas) == 2 &&
			!slices.ContainsFunc(info.Cluster.Replicas, func(p *jetstream.PeerInfo) bool { return !p.Current || p.Offline || p.Lag > 0 })
	}, func(info *jetstream.StreamInfo) {
		leader, follower = w.named(info.Cluster.Leader), w.named(info.Cluster.Replicas[0].Name)
	})
	return leader, follower
}

func (w *trio) named(server string) *process {
	return w.all[slices.IndexFunc(w.all, func(p *process) bool { return p.config.ServerName == server })]
}

// eventually asks for the stream until it is as wanted.
func (w *trio) eventually(what string, is func(*jetstream.StreamInfo) bool, then func(*jetstream.StreamInfo)) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		once, end := context.WithTimeout(ctx, 5*time.Second) // an answer may be lost with its server
		s, err := w.js.Stream(once, w.stream)
		end()
		if err == nil && s.CachedInfo().Cluster != nil && is(s.CachedInfo()) {
			then(s.CachedInfo())
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			state := "not known"
			if s != nil {
				b, _ := json.Marshal(s.CachedInfo())
				state = string(b)
			}
			w.t.Fatalf("%s: it did not happen: %v; the stream is %s", what, err, state)
		}
	}
}

// leads has a server lead the stream, if the others let it: one whose copy is behind in
// their eyes is not elected.
func (w *trio) leads(p *process) bool {
	w.t.Helper()
	ask, err := json.Marshal(map[string]any{"placement": map[string]string{"preferred": p.config.ServerName}})
	if err != nil {
		w.t.Fatal(err)
	}
	for range 5 {
		if leader, _ := w.settled(); leader == p {
			return true
		}
		_, _ = w.nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+w.stream, ask, 10*time.Second)
	}
	leader, _ := w.settled()
	return leader == p
}

// flushed waits until a text is in the files that a server has of the stream.
func (w *trio) flushed(p *process, text string) {
	w.t.Helper()
	w.eventually(p.config.ServerName+" has written", func(*jetstream.StreamInfo) bool {
		for _, path := range embeddedtest.Blocks(w.t, p.config.Dir, w.stream) {
			if block, err := os.ReadFile(path); err == nil && bytes.Contains(block, []byte(text)) {
				return true
			}
		}
		return false
	}, func(*jetstream.StreamInfo) {})
}

// unread returns what is wrong with the agent's log, as readers, the check or the scrub
// name it; nil if all frames are there.
func (w *trio) unread(a messages.AgentID, tails []eventlog.Position) error {
	w.t.Helper()
	n := 0
	for r, err := range w.log.Read(w.t.Context(), a, eventlog.Range{}) {
		if err != nil {
			return err
		}
		if n == len(tails) || r.Frame.ID != tails[n].Frame {
			return fmt.Errorf("frame %d is %s", n, r.Frame.ID)
		}
		n++
	}
	if n == len(tails) {
		return nil
	}
	var loss *natslog.LossError
	if err := w.log.Check(w.t.Context(), w.log.ShardOf(a), true); errors.As(err, &loss) {
		return loss
	}
	w.t.Errorf("%d of %d frames are there, and nothing is named", n, len(tails))
	return nil
}

// TestDamagedReplica damages the copy that one of three servers has, while it is killed:
// what the others have heals it, or, when that server leads, what is missing is named.
func TestDamagedReplica(t *testing.T) { // A29
	underLoad(t)
	a := logtest.Agent("ada")
	w := newTrio(t, a)
	var tails []eventlog.Position
	var tail eventlog.Position
	for range 20 {
		tail = w.append(a, tail)
		tails = append(tails, tail)
	}
	w.mark(a)
	third := string(tails[2].Frame)
	for _, harm := range []struct {
		name   string
		change func(block []byte, at int) []byte
	}{
		{"flip", func(block []byte, at int) []byte { block[at] ^= 1; return block }},
		{"cut", func(block []byte, at int) []byte { return block[:at] }},
		{"removed", func([]byte, int) []byte { return nil }},
	} {
		for _, role := range []string{"follower", "leader"} {
			leader, victim := w.settled()
			if role == "leader" {
				victim = leader
			}
			w.flushed(victim, third)
			victim.kill()
			embeddedtest.Spoil(t, victim.config.Dir, w.stream, third, harm.change)
			victim.start(t)
			w.settled()
			if err := w.unread(a, tails); err != nil {
				t.Fatalf("%s at the %s: %v", harm.name, role, err)
			}
			led := w.leads(victim)
			err := w.unread(a, tails)
			t.Logf("%s at the %s, which leads now: %v; named: %v", harm.name, role, led, err)
			if err != nil {
				return // no more is to be expected of this copy
			}
			tail = w.append(a, tail)
			tails = append(tails, tail)
		}
	}
}
