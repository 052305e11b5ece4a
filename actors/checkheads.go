package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
)

// CheckHeads compares the headers of an agent's newest frame with what its events make of it,
// if it is to look deep: lists and recovery use the headers alone. It reports an agent whose
// events cannot be folded.
func CheckHeads(log eventlog.Reader) doctor.Check {
	return func(ctx context.Context, s doctor.Subject, o doctor.Options, report func(doctor.Finding)) error {
		if !o.Deep || s.Stream == "" {
			return nil
		}
		f := doctor.Finding{Check: "head", Status: doctor.Fail, Agent: s.Agent, Event: s.Tail.Last, Stream: s.Stream, Seq: s.Tail.Seq}
		l := &loading{}
		err := l.apply(s.Agent, 0, log.Read(ctx, s.Agent, eventlog.Range{}))
		var damage *eventlog.DamageError
		switch {
		case errors.As(err, &damage):
			f.Event, f.Seq, f.Detail = damage.Event, damage.Seq, damage.Err.Error()
			f.Remedy = "the agent does no more work, unless a snapshot lies behind the place, and others are not affected; restore a backup elsewhere for the rest"
			report(f)
			return nil
		case errors.Is(err, errEncrypted):
			return nil
		case err != nil || l.tail.Frame != s.Tail.Frame: // it has been written to meanwhile
			return err
		}
		if is := Summarize(&l.state); is.Phase != s.Summary.Phase || is.Turn != s.Summary.Turn || is.Open != s.Summary.Open {
			f.Detail = fmt.Sprintf("its headers say %s, its events make it %s", describe(s.Summary), describe(is))
			f.Remedy = "only nodes may publish to the log's subjects; its next frame corrects the headers: send it an input"
			report(f)
		}
		return nil
	}
}

// describe returns a summary in words.
func describe(s eventlog.Summary) string {
	text := string(s.Phase)
	if s.Turn != "" {
		text += " in turn " + string(s.Turn)
	}
	if s.Open {
		text += ", with open work"
	}
	return text
}
