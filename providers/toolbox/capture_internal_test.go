package toolbox

import (
	"errors"
	"testing"
)

func TestCapture(t *testing.T) {
	full := errors.New("no room")
	for name, c := range map[string]struct {
		room int
		kept string
		err  error
	}{
		"all":     {100, "0123456789", errOutput},
		"no room": {7, "01234", full},
		"nothing": {3, "", full},
	} {
		stops, taken := 0, 0
		k := &capture{limit: 10, stop: func(error) { stops++ }, room: func(n int) error {
			if taken += n; taken > c.room {
				return full
			}
			return nil
		}}
		for _, piece := range []string{"01234", "56789", "more"} {
			if n, err := k.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Errorf("%s: %d, %v", name, n, err)
			}
		}
		if k.buf.String() != c.kept || k.err != c.err || stops != 1 {
			t.Errorf("%s: kept %q, %v, stopped %d times", name, k.buf.String(), k.err, stops)
		}
	}
}
