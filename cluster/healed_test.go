package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/inbox"
	"github.com/reprise-dev/reprise/messages"
)

// An owner that was cut off and comes back keeps pulling until it learns that
// it was replaced. It must take nothing from its successor: what it took would
// come back late, behind newer inputs.
func TestReplacedOwnerTakesNothing(t *testing.T) { // A7 A26
	w := newWorld(t)
	w.ok(w.node().Close()) // makes the streams
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	p := a.Partition()
	taken := make(chan string, 100)
	next := func() string {
		select {
		case got := <-taken:
			return got
		case <-w.ctx.Done():
			t.Fatal("nothing was taken")
			return ""
		}
	}
	pull := func(owner string, epoch messages.Epoch) (stop func()) {
		b, err := inbox.Open(w.ctx, inbox.Config{
			Conn: w.connect(), Told: func(string, messages.AgentID, messages.Answer) {}, Logger: w.log.Logger(),
			Deliver: func(_ context.Context, d *actors.Deliver) (messages.Answer, error) {
				in, _ := d.Command.(messages.Input)
				taken <- owner + " " + in.Content.Text()
				return messages.Answer{N: 1}, nil
			},
		})
		w.ok(err)
		stop = b.Pull(p, epoch)
		for took := ""; took != owner; { // until the takeover is over
			w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte("probe")))
			took, _, _ = strings.Cut(next(), " ")
		}
		return stop
	}
	stopOld := pull("old", 1_000_001)
	defer stopOld()
	stopNew := pull("new", 1_000_002)
	defer stopNew()
	const inputs = 50
	for i := range inputs {
		w.ok(w.nc.PublishMsg(&nats.Msg{Subject: "reprise.in.default.assistant.a", Data: []byte(fmt.Sprint(i))}))
	}
	for i := range inputs {
		got := next()
		for strings.HasSuffix(got, " probe") || i > 0 && got == fmt.Sprintf("new %d", i-1) {
			got = next() // "old" may have had a probe in hand, and "new" is sent again what it had not acknowledged
		}
		if want := fmt.Sprintf("new %d", i); got != want {
			t.Fatalf("%q was taken, want %q", got, want)
		}
	}
}
