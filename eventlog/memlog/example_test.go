package memlog_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// A frame is appended behind the tail that its writer knows, and a second writer is refused.
func ExampleNew() {
	ctx := context.Background()
	ann, err := messages.ParseAgentID("support/ann")
	if err != nil {
		log.Fatal(err)
	}
	frame := &messages.Frame{ID: "01JZX4", Epoch: 1, First: 1, Time: time.Unix(1767225600, 0), Events: []messages.Event{
		messages.AgentCreated{Agent: ann.Full()}, messages.CommandNoop{Command: "abort", Reason: "no turn is running"},
	}}
	body, err := messages.EncodeFrame(ann, frame)
	if err != nil {
		log.Fatal(err)
	}

	events := memlog.New()
	tail, err := events.Append(ctx, eventlog.Entry{Agent: ann, Frame: frame, Bytes: body, Summary: eventlog.Summary{Phase: messages.PhaseIdle}})
	fmt.Println(tail.Last, err)
	for rec, err := range events.Read(ctx, ann, eventlog.Range{}) {
		fmt.Println(rec.Frame.ID, len(rec.Frame.Events), err)
	}

	other := *frame
	other.ID = "01JZX5"
	if body, err = messages.EncodeFrame(ann, &other); err != nil {
		log.Fatal(err)
	}
	_, err = events.Append(ctx, eventlog.Entry{Agent: ann, Frame: &other, Bytes: body, Summary: eventlog.Summary{Phase: messages.PhaseIdle}})
	var conflict *eventlog.ConflictError
	fmt.Println(errors.As(err, &conflict))
	// Output:
	// 2 <nil>
	// 01JZX4 2 <nil>
	// true
}
