package export_test

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
)

// A file of one agent: its head, its frames and its end.
func ExampleNewWriter() {
	w, err := export.NewWriter(os.Stdout, export.Head{Agent: "default/support/ann", At: time.Unix(1767225600, 0).UTC()})
	if err != nil {
		log.Fatal(err)
	}
	end, err := w.Close(nil, nil)
	fmt.Println(end.Frames, "frames", err)
	// Output:
	// {"reprise":"export","format":1,"agent":"default/support/ann","at":"2026-01-01T00:00:00Z","blobs":false}
	// {"frames":0,"events":0,"last":0,"definitions":0,"blobs":0,"sha256":"c4368d3bfd515ae12663f0f6fc016d279169a9919b8cc9c44bea75765e90078b"}
	// 0 frames <nil>
}

// A part of a file that is cut off or changed is not taken for the whole.
func ExampleLines() {
	for line, err := range export.Lines(file()) {
		if err != nil {
			log.Fatal(err)
		}
		switch {
		case line.Head != nil:
			fmt.Println("agent", line.Head.Agent)
		case line.Frame != nil:
			fmt.Println("frame with", len(line.Frame.Events), "events")
		case line.End != nil:
			fmt.Println("the end, after event", line.End.Last == messages.EventNumber(2))
		}
	}
	// Output:
	// agent default/support/ann
	// frame with 2 events
	// the end, after event true
}
