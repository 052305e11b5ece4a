package export_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
)

// file is what `reprise export support/ann --to FILE` has written.
func file() io.Reader {
	var file bytes.Buffer
	z := gzip.NewWriter(&file)
	w, err := export.NewWriter(z, export.Head{Agent: "support/ann"})
	if err != nil {
		log.Fatal(err)
	}
	err = w.Frame(&messages.Frame{ID: "01K", Epoch: 1, First: 1, Time: time.Unix(1767225600, 0), Events: []messages.Event{
		messages.AgentCreated{Agent: "default/support/ann"},
		messages.InputAccepted{Input: "u1", Content: messages.TextContent("Order 7 came broken")},
	}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := w.Close(nil, nil); err != nil {
		log.Fatal(err)
	}
	if err := z.Close(); err != nil {
		log.Fatal(err)
	}
	return &file
}

// A test reads recorded agents from a file.
func ExampleAgents() {
	for agent, err := range export.Agents(file()) {
		if err != nil {
			log.Fatal(err)
		}
		for _, f := range agent.Frames {
			for i, ev := range f.Events {
				fmt.Println(agent.Head.Agent, f.First+messages.EventNumber(i), ev.EventType())
			}
		}
	}
	// Output:
	// default/support/ann 1 agent.created
	// default/support/ann 2 input.accepted
}
