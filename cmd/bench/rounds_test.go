package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/providers/providertest"
)

// orders are a target and plans as a child process reads them.
func orders(t *testing.T, all ...any) *bytes.Buffer {
	t.Helper()
	var in bytes.Buffer
	for _, o := range all {
		if err := json.NewEncoder(&in).Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	return &in
}

// TestLoop holds that each loop keeps the four messages of each turn in a file of
// its own, with answers whole and streamed, and that plans never share an agent.
func TestLoop(t *testing.T) {
	for _, stream := range []bool{false, true} {
		script := providertest.TwoStep(toolName, toolInput)
		model, err := providertest.Start(func(r *providertest.Request) providertest.Answer {
			a := script(r)
			a.Whole = !stream
			return a
		}, providertest.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = model.Close() }()
		dir := t.TempDir()
		var out bytes.Buffer
		err = serveLoop(t.Context(), orders(t, target{URL: model.URL, Stream: stream, Dir: dir}, plan{AtOnce: 1, Agents: 1, Turns: 1}, plan{AtOnce: 2, Agents: 3, Turns: 2}), &out)
		if err != nil {
			t.Fatal(err)
		}
		answers := json.NewDecoder(&out)
		for i, want := range []int{1, 3 * 2} {
			var w worked
			if err := answers.Decode(&w); err != nil || len(w.Latencies) != want || w.Window <= 0 {
				t.Errorf("plan %d: %+v, %v", i, w, err)
			}
		}
		for agent, turns := range []int{1, 2, 2, 2} {
			kept, err := os.ReadFile(filepath.Join(dir, agentID(agent, 0).Key))
			if lines := strings.Count(string(kept), "\n"); err != nil || lines != turns*perTurn {
				t.Errorf("streamed %v: agent %d kept %d messages, want %d: %v", stream, agent, lines, turns*perTurn, err)
			}
		}
	}
}

// TestPromptClient holds that the client takes the chunks of a reply until its end,
// and a refusal, a wrong answer and a missing endpoint for errors.
func TestPromptClient(t *testing.T) {
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Shutdown() }()
	ask := func() error {
		return servePrompts(t.Context(), orders(t, target{URL: srv.ClientURL()}, plan{AtOnce: 1, Agents: 1, Turns: 1}), &bytes.Buffer{})
	}
	if err := ask(); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("no endpoint: %v", err)
	}
	nc, err := srv.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	refusal := &nats.Msg{Header: nats.Header{"Nats-Service-Error": {"no such agent"}}}
	for _, c := range []struct {
		name, want string
		reply      []*nats.Msg
	}{
		{"answered", "", []*nats.Msg{chunkOf(`{"type":"status","data":"ack"}`), chunkOf(`{"type":"response","data":"do"}`), chunkOf(`{"type":"x","data":[1]}`), chunkOf(`{"type":"response","data":"ne"}`), chunkOf("")}},
		{"refused", "no such agent", []*nats.Msg{refusal}},
		{"empty", `the answer is ""`, []*nats.Msg{chunkOf(`{"type":"status","data":"ack"}`), chunkOf("")}},
	} {
		sub, err := nc.Subscribe("agents.prompt.assistant.default.a0-0", func(m *nats.Msg) {
			for _, r := range c.reply {
				_ = m.RespondMsg(r) // the client reports what it misses
			}
		})
		if err != nil || nc.Flush() != nil {
			t.Fatal(err)
		}
		if err := ask(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		_ = sub.Unsubscribe()
	}
}

func chunkOf(data string) *nats.Msg { return &nats.Msg{Data: []byte(data)} }

// TestRounds holds that a plan is done in whole rounds until its window is full,
// each time with new agents.
func TestRounds(t *testing.T) { synctest.Test(t, testRounds) }

func testRounds(t *testing.T) {
	var agents []int
	a := asker{start: func(agent int) (func(context.Context) error, func(), error) {
		agents = append(agents, agent)
		return func(context.Context) error { <-time.After(time.Second); return nil }, func() {}, nil
	}}
	const turns = 2 * 3 // of a round, a second each
	p := plan{AtOnce: 1, Agents: 2, Turns: 3, Window: (2*turns + 1) * time.Second}
	got, err := measured(t.Context(), p, a.do)
	if err != nil || got.done != 3*turns || got.window != 3*turns*time.Second || got.all != got.done+3*p.warmUp().Agents {
		t.Errorf("done %d in %v, all %d, %v", got.done, got.window, got.all, err)
	}
	for i, agent := range agents {
		if agent != i {
			t.Fatalf("agent %d is asked again", agent)
		}
	}
}
