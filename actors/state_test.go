package actors_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// A write of the state that the log does not store fails, whatever the reason, and changes
// nothing. The state stays as before, in later commands, in a snapshot and after a restart,
// and the id is not used up.
func TestStateIsNotStored(t *testing.T) { // A60
	const serverLimit = 40 << 10
	large := func(n int) string { return `{"plan":"` + strings.Repeat("x", n) + `"}` }
	for name, c := range map[string]struct {
		patch string
		log   error // nil: the frame is too large
		code  messages.Code
	}{
		"beyond a frame":       {large(2 * eventlog.MaxFrame), nil, messages.TooLarge},
		"beyond the server":    {large(serverLimit), nil, messages.TooLarge},
		"refused by the fence": {`{"plan":null,"seats":3}`, &eventlog.ConflictError{Agent: ada}, messages.Unavailable},
		"refused as invalid":   {`{"plan":"paid"}`, fmt.Errorf("no: %w", eventlog.ErrInvalid), messages.Internal},
		"refused as no frame":  {`{"plan":"paid"}`, &eventlog.DamageError{Agent: ada, Err: errors.New("this is no frame")}, messages.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			var refuses atomic.Bool
			log := newSnapshots(memlog.NewStore())
			s := actorstest.New(t, &eventlog.Store{Log: log, Snapshots: log})
			cfg := config(echo())
			cfg.SnapshotEvery = 1
			cfg.Store.Log = &refusing{s.Store().Log, func(e eventlog.Entry) error {
				switch {
				case len(e.Bytes) > serverLimit:
					return fmt.Errorf("%d bytes: %w", len(e.Bytes), eventlog.ErrTooLarge)
				case e.Frame.Cause.ID == "bad" && refuses.Load():
					return c.log
				}
				return nil
			}}
			node := s.Start(cfg)
			node.Must(ada, messages.SetState{ID: "s1", Patch: []byte(`{"plan":"free","seats":1}`)})
			log.await(ada, s)
			before := len(s.Events(ada))
			wantState := func(when, state string) {
				t.Helper()
				whole, err := node.Runtime().Load(t.Context(), ada, true)
				if err != nil {
					t.Fatal(err)
				}
				saved, err := node.Runtime().Load(t.Context(), ada, false)
				if err != nil || !saved.Resumed {
					t.Fatalf("%s: load from the snapshot: %v", when, err)
				}
				if got, kept := string(whole.State.Data.JSON()), string(saved.State.Data.JSON()); got != state || kept != state {
					t.Errorf("%s got state %.99s, from a snapshot %.99s, want %s", when, got, kept, state)
				}
			}
			const first = `{"plan":"free","seats":1}`
			wantState("before", first)
			refuses.Store(true)
			bad := messages.SetState{ID: "bad", Patch: []byte(c.patch)}
			wantCode(t, node.Do(ada, bad), c.code)
			refuses.Store(false)
			wantState("after the refusal", first)
			if n := len(s.Events(ada)); n != before {
				t.Errorf("got %d new events, want none: %v", n-before, s.Types(ada)[before:])
			}
			if a := insist(t, node, ada, messages.SetState{ID: "s2", Patch: []byte(`{"note":"on"}`)}); a.Duplicate {
				t.Errorf("the next write: got answer %+v, want no duplicate", a)
			}
			log.await(ada, s)
			const second = `{"note":"on","plan":"free","seats":1}`
			wantState("after the next write", second)
			node.Stop()
			node = s.Start(cfg)
			if a := node.Must(ada, messages.SetState{ID: "bad", Patch: []byte(`{"plan":"free"}`)}); a.Duplicate {
				t.Errorf("the id of the refused write: got answer %+v, want no duplicate", a)
			}
			log.await(ada, s)
			wantState("after a restart", second)
		})
	}
}
