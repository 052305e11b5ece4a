package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

func TestSpine(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	echo := tool.New("echo", "Say it back", tool.Pure, func(_ context.Context, a struct {
		Text string `json:"text"`
	}) (string, error) {
		return a.Text, nil
	})
	start := time.Now()
	node, err := cluster.Start(ctx, cluster.Config{
		Data: t.TempDir(), Sync: "relaxed",
		Providers: providers.Set{"scripted": scripted.TwoStep("echo", `{"text":"hi"}`)},
		Agents:    []actors.Definition{{Kind: "assistant", Model: "scripted/two", Instructions: "Be brief.", Tools: []tool.Tool{echo}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	t.Log("started", time.Since(start), node.Partitions())
	for ev, err := range node.Client().Ask(ctx, "assistant/main", "hello") {
		t.Log(ev.Type, ev.N, ev.Turn, ev.Text, ev.Output, err)
	}
	for line, err := range node.Client().Query(ctx, "assistant/main", messages.Query{View: "replay"}) {
		t.Log(string(line), err)
	}
	for line, err := range node.Client().QueryTenant(ctx, "default", messages.Query{View: "agents"}) {
		t.Log(string(line), err)
	}
	a, err := node.Client().Do(ctx, "assistant/main", messages.Interrupt{})
	t.Log(a, err)
	for line, err := range node.Client().Query(ctx, "assistant/none", messages.Query{View: "show"}) {
		t.Log(string(line), err)
	}
}
