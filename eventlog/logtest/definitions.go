package logtest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

var definitions = map[string]func(*testing.T, Opened){
	"a definition is kept by its hash, once": func(t *testing.T, o Opened) {
		ctx, body := context.Background(), []byte("name: assistant\n")
		want := messages.DigestOf(body)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if hash, err := o.PutDefinition(ctx, body); err != nil || hash != want {
					t.Errorf("stored as %s, %v; want %s", hash, err, want)
				}
			})
		}
		wg.Wait()
		got, err := o.Definition(ctx, want)
		if err != nil || string(got) != string(body) {
			t.Fatalf("got %q, %v", got, err)
		}
	},
	"an unknown definition is not found": func(t *testing.T, o Opened) {
		for _, hash := range []messages.Digest{"", ">", "abc", messages.DigestOf(nil)} {
			_, err := o.Definition(context.Background(), hash)
			var e *messages.Error
			if !errors.As(err, &e) || e.Code != messages.NotFound {
				t.Errorf("hash %q: %v, want not_found", hash, err)
			}
		}
	},
}
