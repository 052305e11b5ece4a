package memlog_test

import (
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

func TestLog(t *testing.T) {
	logtest.Run(t, func(*testing.T) logtest.Opened {
		l := memlog.New()
		return logtest.Opened{
			Store:  l.Store(),
			Feed:   l,
			Inject: func(_ *testing.T, e eventlog.Entry, foreign bool) { l.Inject(e, foreign) },
			Tamper: func(t *testing.T, a messages.AgentID, b messages.Blob) {
				if !l.Tamper(a, b.SHA256, func(payload []byte) []byte { payload[len(payload)/2] ^= 1; return payload }) {
					t.Fatal("there is no such blob")
				}
			},
		}
	})
}
