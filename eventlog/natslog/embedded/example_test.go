package embedded_test

import (
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
)

// A NATS server in the process, which other processes of the machine reach with a login.
func ExampleStart() {
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	login, err := embedded.ParseLogin("ops:correct-horse")
	if err != nil {
		log.Fatal(err)
	}
	server, err := embedded.Start(embedded.Config{Dir: dir, Login: login, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown()
	conn, err := server.Connect()
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Println(conn.IsConnected(), login) // which prints without the password
	// Output: true xxxxx
}
