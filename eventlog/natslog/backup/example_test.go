package backup_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/backup"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
)

// serve runs a server in the process, and returns a connection to it.
func serve() (conn *nats.Conn, stop func()) {
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		log.Fatal(err)
	}
	server, err := embedded.Start(embedded.Config{Dir: dir, DontListen: true, Sync: embedded.SyncRelaxed, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	if conn, err = server.Connect(); err != nil {
		log.Fatal(err)
	}
	return conn, func() { conn.Close(); server.Shutdown(); _ = os.RemoveAll(dir) }
}

// A copy of an installation, made while it runs, becomes another installation.
func ExampleWrite() {
	ctx := context.Background()
	from, stop := serve()
	defer stop()
	if _, err := natslog.Open(ctx, natslog.Config{Conns: []*nats.Conn{from}}); err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := backup.Write(ctx, &file, backup.Config{Conn: from}); err != nil {
		log.Fatal(err)
	}

	to, end := serve()
	defer end()
	what, err := backup.Restore(ctx, bytes.NewReader(file.Bytes()), backup.RestoreConfig{Config: backup.Config{Conn: to}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(what.Root, what.Format, what.Encrypted())
	// Output: reprise 1 false
}
