package actors

import (
	"slices"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// Callers above a detached call receive nothing of the agents below it.
func TestSubscribers(t *testing.T) {
	a, b, c := messages.Caller{Agent: "a"}, messages.Caller{Agent: "b", Detached: true}, messages.Caller{Agent: "c"}
	for _, h := range []struct{ chain, want []messages.Caller }{
		{nil, nil}, {[]messages.Caller{a, c}, []messages.Caller{a, c}}, {[]messages.Caller{a, b, c}, []messages.Caller{c}}, {[]messages.Caller{a, b}, nil},
	} {
		if got := subscribers(h.chain); !slices.Equal(got, h.want) {
			t.Errorf("subscribers of %v: got %v, want %v", h.chain, got, h.want)
		}
	}
}
