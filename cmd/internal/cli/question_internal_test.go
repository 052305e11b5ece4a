package cli

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// asking is a turn whose stream the test writes, with a person who says yes.
func asking(t *testing.T, waits ...messages.CallID) (*turn, chan heard) {
	server, err := embedded.Start(embedded.Config{Dir: t.TempDir(), DontListen: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Shutdown() })
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	stream := make(chan heard)
	a := &turn{
		app: &app{out: io.Discard, err: io.Discard}, client: client.New(nc, ""), agent: "clerk/a", stream: stream, rests: "t1",
		known: make(map[string]projections.Waiting), settled: make(map[string]bool), asked: make(map[string]bool),
		person: func(context.Context, string) (string, error) { return "yes\n", nil },
	}
	for _, call := range waits {
		w := projections.Waiting{Turn: "t1", Call: call, Kind: messages.WaitApproval}
		a.known[placeOf(w)] = w
	}
	return a, stream
}

func fact(kind, data string) heard {
	return heard{ev: client.Event{Type: kind, Turn: "t1", Data: []byte(data)}}
}

// That the turn continues because of another call does not show that an answer has had
// its effect.
func TestAnswerIsAwaited(t *testing.T) { // A43
	a, stream := asking(t, "c2")
	a.offered = []client.Question{{ID: "t1/c2/1", ReplySubject: "answers"}}
	over := make(chan bool)
	go func() {
		left, err := a.answerOffered(t.Context())
		over <- left || err != nil
	}()
	for _, h := range []heard{fact("turn.resumed", `{}`), fact("approval.granted", `{"turn":"t1","call":"c2"}`)} {
		select {
		case stream <- h:
		case <-over:
			t.Fatalf("the answer was not awaited until %s", h.ev.Type)
		}
	}
	if <-over {
		t.Error("the answer had no effect")
	}
}

// A question that comes while the person is asked in the agent's place is answered:
// a command takes a right that the person may not have.
func TestLateQuestionIsAnswered(t *testing.T) { // A43
	a, _ := asking(t) // the call is of an agent below
	stream := make(chan heard, 2)
	a.stream = stream
	a.person = func(context.Context, string) (string, error) {
		stream <- heard{ev: client.Event{Type: "query", Question: &client.Question{ID: "t1/c1/1", ReplySubject: "answers"}}}
		stream <- fact("turn.resumed", `{}`)
		return "yes\n", nil
	}
	w := projections.Waiting{Turn: "t1", Call: "c1", Agent: "default/leaf/l", Kind: messages.WaitApproval}
	if left, err := a.decideOn(t.Context(), w); left || err != nil {
		t.Errorf("left %t, %v", left, err)
	}
}

// A question about a call that the person here has decided about already is not
// put again.
func TestDecidedIsNotAskedAgain(t *testing.T) { // A43
	a, _ := asking(t, "c1")
	late := heard{ev: client.Event{Type: "query", Question: &client.Question{ID: "t1/c1/1"}}}
	a.learn(late.ev)
	a.decided("t1", "c1")
	a.learn(late.ev)
	if len(a.offered) > 0 {
		t.Errorf("it is asked again: %v", a.offered)
	}
}

// A decision that had no effect at an agent below is reported, one that had is not.
func TestToldOfNoEffectBelow(t *testing.T) { // A45
	a, _ := asking(t)
	var told strings.Builder
	a.app.err = &told
	a.learn(fact("child.settled", `{"agent":"default/leaf/l","waits":"c1","n":7}`).ev)
	if told.Len() > 0 {
		t.Errorf("reported what had its effect: %s", told.String())
	}
	a.learn(fact("child.settled", `{"agent":"default/leaf/l","waits":"c2","refused":"conflict","message":"it was denied before"}`).ev)
	if want := "a decision about call c2 of leaf/l had no effect: it was denied before"; !strings.Contains(told.String(), want) {
		t.Errorf("told %q", told.String())
	}
}

// What was printed of an answer that is cut off cannot be taken back: the answer begins again on a line
// of its own, and the reason is on standard error.
func TestCutAnswer(t *testing.T) {
	var out, remarks strings.Builder
	a := &turn{app: &app{out: &out, err: &remarks}}
	for _, ev := range []client.Event{{Type: "delta", Text: "12 times"}, {Type: "cut", Text: "the answer was cut off"}, {Type: "delta", Text: "12 times 12 is 144."}} {
		if err := a.show(ev); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "12 times\n12 times 12 is 144." || remarks.String() != "· the answer was cut off\n" {
		t.Errorf("printed %q and %q", out.String(), remarks.String())
	}
}
