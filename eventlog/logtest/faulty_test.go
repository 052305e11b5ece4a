package logtest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
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

// What each fault of the store's plan does to a put and to a get.
func TestStoreFaults(t *testing.T) {
	a, ctx := logtest.Agent("ada"), t.Context()
	for _, c := range []struct {
		name  string
		fault logtest.Fault
		put   string // what a put of the new one leaves of the old
		told  bool   // that it is stored
		got   string // what a get of the newest of two gives; empty: none
		err   bool   // a get fails
	}{
		{"pass", logtest.Pass, "new", true, "two", false},
		{"lost request", logtest.LoseRequest, "old", false, "", true},
		{"lost answer", logtest.LoseAck, "new", false, "", true},
		{"delay", logtest.Delay, "old", false, "", true},
		{"timeout", logtest.Timeout, "old", false, "", true},
		{"slow loss of the answer", logtest.SlowLoseAck, "new", false, "", true},
		{"slow request", logtest.SlowRequest, "new", true, "two", false},
		{"slow answer", logtest.SlowAck, "new", true, "two", false},
		{"double", logtest.Double, "new", true, "two", false},
		{"forgotten", logtest.Forget, "", true, "", false},
		{"stale", logtest.Stale, "new", true, "one", false},
		{"garbled", logtest.Garble, "new", true, "tvo", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := logtest.NewFaulty(memlog.NewStore()).PlanStore(logtest.Pass, c.fault).Store()
			if err := log.PutSnapshot(ctx, a, "state", []byte("old")); err != nil {
				t.Fatal(err)
			}
			if err := log.PutSnapshot(ctx, a, "state", []byte("new")); (err == nil) != c.told || err != nil && !errors.Is(err, logtest.ErrLost) {
				t.Errorf("put: %v", err)
			}
			if got, err := log.Snapshot(ctx, a, "state"); err != nil || string(got) != c.put {
				t.Errorf("the put left %q, %v; want %q", got, err, c.put)
			}

			log = logtest.NewFaulty(memlog.NewStore()).PlanStore(logtest.Pass, logtest.Double, c.fault).Store()
			for _, snapshot := range []string{"one", "two"} {
				if err := log.PutSnapshot(ctx, a, "state", []byte(snapshot)); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := log.Snapshot(ctx, a, "state"); (err != nil) != c.err || string(got) != c.got {
				t.Errorf("got %q, %v; want %q", got, err, c.got)
			}
			if b, err := log.PutBlob(ctx, a, strings.NewReader("blob")); err != nil || b.Size != 4 {
				t.Errorf("behind the plan: %+v, %v", b, err)
			}
		})
	}
}

// A blob whose answer is lost is stored; a get that meets a fault fails, and the
// blob is there the next time.
func TestStoreFaultsOfBlobs(t *testing.T) {
	a, ctx := logtest.Agent("ada"), t.Context()
	store := memlog.NewStore()
	log := logtest.NewFaulty(store).PlanStore(logtest.LoseRequest, logtest.LoseAck, logtest.LoseAck, logtest.Forget).Store()
	want := messages.Blob{SHA256: messages.DigestOf([]byte("blob")), Size: 4}
	for _, stored := range []bool{false, true} {
		if _, err := log.PutBlob(ctx, a, strings.NewReader("blob")); !errors.Is(err, logtest.ErrLost) {
			t.Errorf("put: %v", err)
		}
		if r, err := store.Blob(ctx, a, want); (err == nil) != stored {
			t.Errorf("stored: %v, %v", r, err)
		}
	}
	if _, err := log.Blob(ctx, a, want); !errors.Is(err, logtest.ErrLost) {
		t.Errorf("get: %v", err)
	}
	r, err := log.Blob(ctx, a, want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "blob" {
		t.Errorf("%q, %v", got, err)
	}
}
