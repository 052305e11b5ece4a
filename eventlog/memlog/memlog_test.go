package memlog_test

import (
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
)

func TestLog(t *testing.T) {
	logtest.Run(t, func(*testing.T) logtest.Opened {
		l := memlog.New()
		return logtest.Opened{Log: l, Inject: func(_ *testing.T, e eventlog.Entry, foreign bool) { l.Inject(e, foreign) }}
	})
}
