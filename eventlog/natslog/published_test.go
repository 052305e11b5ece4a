package natslog_test

import (
	"reflect"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
)

// TestPublished checks that a frame as it was published is the one that the log returns, and no other.
func TestPublished(t *testing.T) {
	l, c := open(t, 1)
	a, nc := logtest.Agent("ada"), c.Conns[0]
	published, err := nc.SubscribeSync(c.Subjects.Log(a))
	if err != nil {
		t.Fatal(err)
	}
	grow(t, l, a, eventlog.Position{}, 2)
	for rec, err := range l.Read(t.Context(), a, eventlog.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		m, err := published.NextMsgWithContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := natslog.Published(a, m, rec.Frame.ID); !reflect.DeepEqual(got, rec.Frame) {
			t.Errorf("%+v was published, %+v is read", got, rec.Frame)
		}
		if natslog.Published(a, m, "another") != nil || natslog.Published(a, nats.NewMsg("s"), rec.Frame.ID) != nil {
			t.Error("another message is taken for the frame")
		}
		m.Data = m.Data[:len(m.Data)-1]
		if got := natslog.Published(a, m, rec.Frame.ID); got != nil {
			t.Errorf("cut short it is %+v", got)
		}
	}
}
