package natslog

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/eventlog/natslog/internal/answers"
)

// TestTurn checks that a crowd waits in turn for as long as a stream answers, however slowly,
// and not longer than for one answer if it does not.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &conn{asking: make(map[string]*asking)}
		var asked []func(bool)
		for range askedAtOnce {
			done, err := c.turn(t.Context(), "S")
			if err != nil {
				t.Fatal(err)
			}
			asked = append(asked, done)
		}
		begun := time.Now()
		if _, err := c.turn(t.Context(), "S"); !errors.Is(err, errNoAnswer) || time.Since(begun) != answers.Wait {
			t.Errorf("behind a silent stream: %v after %v, want %v", err, time.Since(begun), answers.Wait)
		}
		const crowd = 100
		turns := make(chan func(bool), crowd)
		for range crowd {
			go func() {
				done, err := c.turn(t.Context(), "S")
				if err != nil {
					t.Error(err)
				}
				turns <- done
			}()
		}
		for range crowd {
			<-time.After(answers.Wait - time.Second) // of the false clock
			asked[0](true)
			if asked = append(asked[1:], <-turns); asked[askedAtOnce-1] == nil {
				return
			}
		}
	})
}
