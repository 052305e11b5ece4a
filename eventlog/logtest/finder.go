package logtest

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

var finding = map[string]func(*testing.T, Opened){
	"a frame is found by its sequence": func(t *testing.T, o Opened) {
		list := Neighbours(2)
		tails := grow(t, o.Log, list[0], eventlog.Tail{}, 3)
		other := grow(t, o.Log, list[1], eventlog.Tail{}, 1)
		frames, err := collect(o.Log, list[0], 1)
		if err != nil || len(frames) != len(tails) {
			t.Fatalf("%d frames, %v", len(frames), err)
		}
		for i, tail := range tails {
			r, err := o.Log.FrameAt(context.Background(), list[0], tail.Seq)
			if err != nil || r.Tail() != tail || r.Agent != list[0] || r.Size == 0 {
				t.Errorf("at %d is %+v, %v; want %+v", tail.Seq, r, err, tail)
			} else if want := frames[i].Frame; !reflect.DeepEqual(r.Frame, want) {
				t.Errorf("at %d is frame\n%+v, want as it is read\n%+v", tail.Seq, r.Frame, want)
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
