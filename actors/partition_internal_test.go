package actors

import (
	"testing"
	"testing/synctest"
	"time"
)

// The pauses of an agent that fails double, up to a bound. Commands that end a pause early do
// not make the next one longer than the time for which the agent has been failing.
func TestPausesOfAFailingAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failing
		for _, want := range []time.Duration{50, 100, 200, 400} {
			f = f.more()
			if got := f.pause(); got != want*time.Millisecond {
				t.Errorf("after failure %d got a pause of %v, want %v", f.failures, got, want*time.Millisecond)
			}
			<-time.After(f.pause())
		}
		<-time.After(time.Hour)
		if got := f.more().pause(); got != mostPause {
			t.Errorf("after an hour got a pause of %v, want %v", got, mostPause)
		}
		f = failing{}
		for range 100 {
			f = f.more()
			<-time.After(10 * time.Millisecond)
		}
		if got := f.more().pause(); got != firstPause+time.Second {
			t.Errorf("after a second of failures got a pause of %v, want %v", got, firstPause+time.Second)
		}
	})
}
