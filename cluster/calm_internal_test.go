package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// A thousand agents with one trouble fill no log; what is of another kind, and
// errors, are heard.
func TestWarningsAlikeAreFew(t *testing.T) {
	var out bytes.Buffer
	c := newCalm(slog.NewTextHandler(&out, nil))
	for i := range 1000 {
		pass, left := c.admit("alike", 7)
		if pass != (i < alikePerSecond) || left != 0 {
			t.Fatalf("warning %d: passed on is %v, %d left out", i, pass, left)
		}
	}
	if pass, left := c.admit("other", 7); !pass || left != 0 {
		t.Errorf("another warning: passed on is %v, %d left out", pass, left)
	}
	if pass, left := c.admit("alike", 8); !pass || left != 1000-alikePerSecond {
		t.Errorf("a second later: passed on is %v, %d left out", pass, left)
	}
	for i := range 2 * mostTexts {
		c.admit(fmt.Sprint("text ", i), 9)
	}
	if len(c.written) > mostTexts {
		t.Errorf("%d texts are counted", len(c.written))
	}
	log := slog.New(c)
	for range 100 {
		log.With("agent", "a").Error("wrong")
	}
	if n := strings.Count(out.String(), "level=ERROR msg=wrong agent=a"); n != 100 {
		t.Errorf("%d of 100 errors were heard", n)
	}
}
