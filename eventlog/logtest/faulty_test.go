package logtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
)

// What each slow fault does, and what the end of the append's context does to it.
func TestSlowFaults(t *testing.T) {
	const lag = 3 * time.Second
	for _, c := range []struct {
		name   string
		fault  logtest.Fault
		told   bool // that the frame is stored
		during bool // it is stored before the lag is over
		after  bool // it is when the append has returned
		cut    bool // it is when the append's context has ended first
	}{
		{"slow request", logtest.SlowRequest, true, false, true, false},
		{"slow answer", logtest.SlowAck, true, true, true, true},
		{"timeout", logtest.Timeout, false, false, false, false},
		{"slow loss of the answer", logtest.SlowLoseAck, false, true, true, true},
		{"slow delivery", logtest.SlowDelivery, false, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, begun := faultyLog(c.fault, lag), time.Now()
				e := logtest.Entry(t, logtest.Agent("ada"), eventlog.Position{})
				time.AfterFunc(lag/2, func() { wantStored(t, log, e, c.during) })
				_, err := log.Append(t.Context(), e)
				if told := err == nil; told != c.told || !told && !errors.Is(err, logtest.ErrLost) || time.Since(begun) != lag {
					t.Errorf("%v after %v", err, time.Since(begun))
				}
				wantStored(t, log, e, c.after)

				log = faultyLog(c.fault, lag)
				ctx, cancel := context.WithTimeout(t.Context(), lag/2)
				defer cancel()
				if _, err := log.Append(ctx, e); !errors.Is(err, logtest.ErrLost) {
					t.Errorf("cut short: %v", err)
				}
				wantStored(t, log, e, c.cut)
			})
		})
	}
}

// A late request arrives at the next append also when the log has been healed.
func TestHeal(t *testing.T) {
	log := faultyLog(logtest.Delay, 0)
	late := logtest.Entry(t, logtest.Agent("ada"), eventlog.Position{})
	if _, err := log.Append(t.Context(), late); err == nil {
		t.Fatal("the fault did not happen")
	}
	log.Heal()
	other := logtest.Entry(t, logtest.Agent("bob"), eventlog.Position{})
	if _, err := log.Append(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	wantStored(t, log, late, true)
	wantStored(t, log, other, true)
}

// faultyLog has the fault many times.
func faultyLog(fault logtest.Fault, lag time.Duration) *logtest.Faulty {
	log := logtest.NewFaulty(memlog.NewStore(), fault, fault, fault)
	log.Lag = lag
	return log
}

func wantStored(t *testing.T, log eventlog.Reader, e eventlog.Entry, want bool) {
	t.Helper()
	tail, err := log.Head(t.Context(), e.Agent)
	if err != nil || (tail.Frame == e.Frame.ID) != want {
		t.Errorf("the log ends with %q (%v), stored should be %v", tail.Frame, err, want)
	}
}
