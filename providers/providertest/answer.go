package providertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// Answer is what the server does with a request: a step of a script, and how
// it travels. The zero Answer is an empty answer with finish reason stop.
//
// A step's Err that is a *providers.Error with a status becomes that status
// with its Retry-After; any other cuts the connection, after what the step
// says. A step's Items do not travel.
type Answer struct {
	scripted.Step

	// Status other than 0 and 200 is an error with Message.
	Status  int
	Message string
	// Header is added to the response, such as Retry-After.
	Header http.Header
	// Whole answers with one JSON document, as if streaming were unknown.
	Whole bool
	// First is the time before the first byte, Each that before every piece
	// of text after it.
	First, Each time.Duration
	// Fault spoils the answer after its last piece and fragment.
	Fault Fault
	// Interleave makes the fragments of parallel calls take turns.
	Interleave bool
	// Index is how fragments indicate which call they belong to.
	Index Index
	// NoUsage leaves the usage out.
	NoUsage bool
	// Output are more items of an answer of the Responses API, or blocks of one of the Messages
	// API, as JSON, behind its reasoning. What they hold as encrypted_content is remembered as given.
	Output []json.RawMessage
	// Data is sent in place of the step, each entry as the data of one event.
	Data []string

	as wording // of an imitated server; nil: plain
}

// Fault is a way to spoil an answer.
type Fault string

// The faults. The zero value spoils nothing.
const (
	Drop     Fault = "drop"     // the connection breaks
	Truncate Fault = "truncate" // the stream ends as if complete, without a finish reason
	Garble   Fault = "garble"   // a chunk that is no JSON
	Complain Fault = "complain" // an error object in the stream
	Fail     Fault = "fail"     // response.failed in the Responses API, elsewhere as Complain
)

// Index is a way to number the fragments of calls.
type Index string

// The ways to number. The zero value numbers properly and names a call's id
// once; with the others every fragment repeats the id.
const (
	NullIndex Index = "null"
	NoIndex   Index = "none"
)

// Steps makes answers of steps.
func Steps(steps ...scripted.Step) []Answer {
	answers := make([]Answer, len(steps))
	for i, s := range steps {
		answers[i] = Answer{Step: s}
	}
	return answers
}

// Failure answers with an HTTP error.
func Failure(status int, message string) Answer { return Answer{Status: status, Message: message} }

// Limited answers 429 with a Retry-After header as given: seconds or a date.
func Limited(retryAfter string) Answer {
	return Answer{Status: http.StatusTooManyRequests, Message: "slow down", Header: http.Header{"Retry-After": {retryAfter}}}
}

// TwoStep is the script of a benchmark: a request that has no tool result as its
// newest message is asked to call tool, others get the text "done". It decodes
// nothing; with Config{Lenient: true, Forget: true} the server costs little.
func TwoStep(tool, arguments string) Script {
	usage := messages.Usage{Input: 12, Output: 4}
	done := Answer{Step: scripted.Step{Text: "done", Usage: usage}}
	return func(r *Request) Answer {
		if r.AfterTool() {
			return done
		}
		call := scripted.Call{Name: tool, Arguments: arguments}
		return Answer{Step: scripted.Step{Calls: []scripted.Call{call}, Usage: usage}}
	}
}

var errCut = errors.New("the script cuts the connection")

// write sends the answer. After an error the connection must be cut.
func (a Answer) write(ctx context.Context, w http.ResponseWriter, number int) error {
	a = a.translated()
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	if wait(ctx, a.First) != nil {
		return errCut
	}
	switch {
	case a.Status != 0 && a.Status != http.StatusOK:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.Status)
		_, err := w.Write(a.errorBody(a.Status))
		return err
	case a.Whole:
		if a.Gate.Wait(ctx) != nil {
			return errCut
		}
		w.Header().Set("Content-Type", "application/json")
		_, err := w.Write(a.whole(number))
		return err
	}
	s := stream{a: a, w: w, number: number, buf: buffers.Get().(*[]byte)}
	defer s.release()
	w.Header()["Content-Type"] = eventStream
	return s.run(ctx)
}

// translated turns a step's error into what the wire knows.
func (a Answer) translated() Answer {
	if a.Err == nil {
		return a
	}
	e := providers.AsError(a.Err)
	if e.Status == 0 || a.Text != "" {
		a.Fault = cmp.Or(a.Fault, Drop)
		return a
	}
	a.Status, a.Message, a.Header = e.Status, e.Message, a.Header.Clone()
	if e.RetryAfter > 0 {
		if a.Header == nil {
			a.Header = http.Header{}
		}
		a.Header.Set("Retry-After-Ms", strconv.FormatInt(e.RetryAfter.Milliseconds(), 10))
	}
	return a
}

// wait lasts d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
