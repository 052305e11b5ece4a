package doctor_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// A log is read through: numbering, chain and checksums of each agent's frames.
func ExampleNew() {
	ctx := context.Background()
	ann := messages.AgentID{Tenant: "default", Kind: "support", Key: "ann"}
	frame := &messages.Frame{ID: "01JZX4", Epoch: 1, First: 1, Time: time.Unix(1767225600, 0), Events: []messages.Event{
		messages.AgentCreated{Agent: ann.Full()}, messages.CommandNoop{Command: "abort", Reason: "no turn is running"},
	}}
	body, err := messages.EncodeFrame(ann, frame)
	if err != nil {
		log.Fatal(err)
	}
	events := memlog.New()
	if _, err := events.Append(ctx, eventlog.Entry{Agent: ann, Frame: frame, Bytes: body, Summary: eventlog.Summary{Phase: messages.PhaseIdle}}); err != nil {
		log.Fatal(err)
	}
	d := doctor.New(doctor.Config{Log: events, Stream: func(int) string { return "memory" }})
	counts, err := d.Agent(ctx, ann, doctor.Options{}, func(f doctor.Finding) { fmt.Println(f.Check, f.Status, f.Detail) })
	fmt.Println(counts.Frames, "frame", counts.Events, "events", err)
	// Output: 1 frame 2 events <nil>
}
