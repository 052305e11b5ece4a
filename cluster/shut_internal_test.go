package cluster

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// A partition that is given up stops although its actor is within a message, as one that waits
// for its log is: what it does is cut off first.
func TestShutCutsOff(t *testing.T) {
	var said bytes.Buffer
	h := &host{system: actor.NewActorSystem(), logger: slog.New(slog.NewTextHandler(&said, nil))}
	t.Cleanup(h.system.Shutdown)
	waits, cut := make(chan struct{}), make(chan struct{})
	props := actor.PropsFromFunc(func(c actor.Context) {
		if _, started := c.Message().(*actor.Started); started {
			close(waits)
			<-cut
		}
	})
	if err := h.spawn(props, 7, 1, func() { close(cut) }); err != nil {
		t.Fatal(err)
	}
	<-waits
	if h.shut(7); said.Len() > 0 {
		t.Errorf("it is said: %s", said.String())
	}
}
