package logtest

import (
	"context"
	"errors"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

var finding = map[string]func(*testing.T, Opened){
	"a frame is found by its sequence": func(t *testing.T, o Opened) {
		list := Neighbours(2)
		tails := grow(t, o.Log, list[0], eventlog.Tail{}, 3)
		other := grow(t, o.Log, list[1], eventlog.Tail{}, 1)
		for _, tail := range tails {
			r, err := o.Log.FrameAt(context.Background(), list[0], tail.Seq)
			if err != nil || r.Tail() != tail || r.Agent != list[0] || r.Size == 0 {
				t.Errorf("at %d is %+v, %v; want %+v", tail.Seq, r, err, tail)
			}
		}
		for _, seq := range []uint64{0, other[0].Seq, other[0].Seq + 100} {
			_, err := o.Log.FrameAt(context.Background(), list[0], seq)
			var refusal *messages.Error
			if !errors.As(err, &refusal) || refusal.Code != messages.NotFound {
				t.Errorf("at %d: %v", seq, err)
			}
		}
	},
}
