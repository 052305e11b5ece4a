package projections_test

import (
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// An event as `reprise events -o json` shows it.
func ExampleNewEventJSON() {
	ev := projections.NewEventJSON(7, 3, "01JZX4", time.Unix(1767225600, 0).UTC(),
		messages.ToolDenied{Turn: "t4", Call: "c1", Message: "too much"})
	line, err := json.Marshal(ev)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
	// Output: {"n":7,"seq":3,"frame":"01JZX4","type":"tool.denied","turn":"t4","at":"2026-01-01T00:00:00Z","data":{"turn":"t4","call":"c1","message":"too much"}}
}
