package cluster_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
)

// TestStreamsReadNoLog checks that a stream of an agent at another node does not read from the log what its owner
// has just appended to it.
func TestStreamsReadNoLog(t *testing.T) {
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	first, second := w.node(agents(echo(), nil)), w.node(agents(echo(), nil))
	w.even(first, second)
	const all, each = 8, 4
	turns := func(from, to int) {
		for i := range all {
			for n := from; n < to; n++ {
				w.say(first.Client(), fmt.Sprint("assistant/k", i), fmt.Sprint("u", n), "hello")
			}
		}
	}
	turns(0, 1) // activates them
	var reads atomic.Int32
	_, err := w.nc.Subscribe("$JS.API.STREAM.MSG.GET.*", func(m *nats.Msg) {
		if strings.Contains(m.Subject, "REPRISE_LOG_") {
			reads.Add(1)
		}
	})
	w.ok(err)
	w.ok(w.nc.Flush())
	turns(1, 1+each)
	if n := reads.Load(); n > all*each/4 { // about half of the turns are streamed through another node
		t.Errorf("%d turns took %d reads of frames", all*each, n)
	}
}
