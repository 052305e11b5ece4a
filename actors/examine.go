package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/messages"
)

// ExamineHeads compares what the headers of an agent's newest frame say of it
// with what its events make of it, if it is to look deep: lists and recovery
// go by the headers alone. An agent whose events cannot be folded is ill.
func ExamineHeads(log eventlog.Reader) doctor.Check {
	return func(ctx context.Context, s doctor.Subject, o doctor.Options, tell func(doctor.Finding)) error {
		if !o.Deep || s.Stream == "" {
			return nil
		}
		f := doctor.Finding{Check: "head", Status: doctor.Fail, Agent: s.Agent, Event: s.Tail.Last, Stream: s.Stream, Seq: s.Tail.Seq}
		state, tail, err := foldedTo(ctx, log, s.Agent, 0)
		var damage *eventlog.DamageError
		switch {
		case errors.As(err, &damage):
			f.Event, f.Seq, f.Detail = damage.Event, damage.Seq, damage.Err.Error()
			f.Remedy = "the agent does no more work, unless a snapshot lies behind the place, and others are not affected; restore a backup elsewhere for the rest"
			tell(f)
			return nil
		case err != nil || tail.Frame != s.Tail.Frame: // sealed, or it has gone on meanwhile
			return err
		}
		if is := Summarize(state); is.Phase != s.Summary.Phase || is.Turn != s.Summary.Turn || is.Open != s.Summary.Open {
			f.Detail = fmt.Sprintf("its headers say %s, its events make it %s", said(s.Summary), said(is))
			f.Remedy = "nobody but nodes may publish to the log's subjects; its next frame says what is right: send it an input"
			tell(f)
		}
		return nil
	}
}

// foldedTo is the state that an agent's frames make up to the one that ends with
// event last, or all of them if that is 0; none if they cannot be opened. It takes a
// panic for damage.
func foldedTo(ctx context.Context, log eventlog.Reader, a messages.AgentID, last messages.EventNumber) (state *turn.State, tail eventlog.Tail, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &eventlog.DamageError{Agent: a, Seq: tail.Seq, Event: tail.Last + 1, Err: fmt.Errorf("an event cannot be folded: %v", p)}
		}
	}()
	state = new(turn.State)
	for rec, err := range log.Read(ctx, a, 0) {
		if err != nil {
			return nil, tail, err
		}
		if rec.Frame.Encrypted() {
			return nil, eventlog.Tail{}, nil
		}
		state.Apply(rec.Frame)
		if tail = rec.Tail(); tail.Last == last {
			break
		}
	}
	return state, tail, nil
}

// said is what a summary says of an agent, in words.
func said(s eventlog.Summary) string {
	text := string(s.Phase)
	if s.Turn != "" {
		text += " in turn " + string(s.Turn)
	}
	if s.Open {
		text += ", owing work"
	}
	return text
}
