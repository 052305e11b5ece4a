package actors

import (
	"testing"
	"testing/synctest"
	"time"
)

// The pauses of an agent that fails double, up to a bound; those that others cut short by
// asking for it do not add up to one that outlasts what it failed of.
func TestPausesOfAFailingAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failing
		for _, want := range []time.Duration{50, 100, 200, 400} {
			f = f.more()
			if got := f.pause(); got != want*time.Millisecond {
				t.Errorf("after failure %d it rests %v", f.failures, got)
			}
			<-time.After(f.pause())
		}
		<-time.After(time.Hour)
		if got := f.more().pause(); got != mostPause {
			t.Errorf("after an hour it rests %v", got)
		}
		f = failing{}
		for range 100 {
			f = f.more()
			<-time.After(10 * time.Millisecond)
		}
		if got := f.more().pause(); got != firstPause+time.Second {
			t.Errorf("it rests %v after a second of failures", got)
		}
	})
}
