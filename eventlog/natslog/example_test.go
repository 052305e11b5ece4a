package natslog_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// The log of a server inside the process. For a server elsewhere take natslog.Connect(url).
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	server, err := embedded.Start(embedded.Config{Dir: dir, DontListen: true, Sync: embedded.SyncRelaxed, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown()
	conn, err := server.Connect()
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	ctx := context.Background()
	events, err := natslog.Open(ctx, natslog.Config{Conns: []*nats.Conn{conn}})
	if err != nil {
		log.Fatal(err)
	}
	ann, err := messages.ParseAgentID("support/ann")
	if err != nil {
		log.Fatal(err)
	}
	tail, err := events.Head(ctx, ann)
	fmt.Println(tail.Last, err)
	// Output: 0 <nil>
}
