package cluster_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
)

// A node on a folder of its own, which other processes of this machine can reach.
func ExampleConfig() {
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	node, err := cluster.Start(context.Background(), cluster.Config{
		Name: "one", Data: dir, Listen: "127.0.0.1:0", // or NATS: "nats://n1,n2,n3" with Replicas: 3
		HTTP:       "127.0.0.1:0", // health, readiness and metrics
		Providers:  providers.Set{"demo": demo.New()},
		Agents:     []actors.Definition{{Kind: "assistant", Model: "demo/demo", Retain: 400 * 24 * time.Hour}},
		Prices:     map[string]messages.Price{"demo/demo": {Input: 1.25, Output: 10}},
		DrainLimit: time.Minute,
		Logger:     slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	fmt.Println(node.Name(), node.Partitions(), node.Sync(), node.HTTP() != "", node.URL() != "")
	// Output: one 64 always true true
}

// The payloads and definitions of an installation, without a node.
func ExampleOpenStore() {
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Listen: "127.0.0.1:0", Sync: "relaxed", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	conn, err := natslog.Connect(node.URL())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	store, err := cluster.OpenStore(ctx, conn, "", nil)
	if err != nil {
		log.Fatal(err)
	}
	ann, err := messages.ParseAgentID("assistant/ann")
	if err != nil {
		log.Fatal(err)
	}
	blob, err := store.PutBlob(ctx, ann, strings.NewReader("a large text"))
	fmt.Println(blob.Size, err)
	// Output: 12 <nil>
}
