package client

import (
	"encoding/json"
	"errors"
	"iter"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

func TestOnlyKeepsTheView(t *testing.T) {
	v := view{Query: messages.Query{View: "turns"}}
	for _, o := range []ViewOption{At(7), Only(messages.Query{View: "doctor", Tail: 3}), Lacking(func(Lacks) {})} {
		o(&v)
	}
	if v.View != "turns" || v.At != 7 || v.Tail != 3 || len(v.lacks) != 1 {
		t.Errorf("got %+v, want the view turns at 7 with a tail of 3", v)
	}
}

// lines yields texts, and then an error unless that is nil.
func lines(failed error, texts ...string) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for _, text := range texts {
			if !yield(json.RawMessage(text), nil) {
				return
			}
		}
		if failed != nil {
			yield(nil, failed)
		}
	}
}

func TestOneLine(t *testing.T) {
	broken := errors.New("some is missing")
	for _, c := range []struct {
		of     iter.Seq2[json.RawMessage, error]
		want   int
		failed bool
	}{
		{lines(nil, "7"), 7, false},
		{lines(broken, "7"), 7, true}, // what was read comes with the error
		{lines(broken), 0, true},
		{lines(nil), 0, true},
		{lines(nil, `"seven"`), 0, true},
	} {
		if got, err := one(decoded[int](c.of)); got != c.want || (err != nil) != c.failed {
			t.Errorf("got %d and %v, want %d", got, err, c.want)
		}
	}
}
