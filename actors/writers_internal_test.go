package actors

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/reprise-dev/reprise/messages"
)

// A purge waits for the writers of the same agent, and for no others.
func TestWritersWait(t *testing.T) { // A108
	synctest.Test(t, func(t *testing.T) {
		var w writers
		ada, bob := messages.AgentID{Tenant: "t", Kind: "k", Key: "ada"}, messages.AgentID{Tenant: "t", Kind: "k", Key: "bob"}
		first, second, others := w.begin(ada), w.begin(ada), w.begin(bob)
		defer others()
		done := make(chan error, 1)
		go func() { done <- w.wait(t.Context(), ada) }()
		for _, end := range []func(){first, second} {
			synctest.Wait()
			select {
			case err := <-done:
				t.Fatalf("wait returned %v while a writer was active", err)
			default:
			}
			end()
		}
		synctest.Wait()
		if err := <-done; err != nil {
			t.Error(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if w.wait(ended, bob) == nil {
			t.Error("got no error, want one: the context ended while a writer was active")
		}
	})
}
