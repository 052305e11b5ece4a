package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A thousand agents with one trouble fill no log; what is of another kind, and errors, are
// logged.
func TestWarningsAlikeAreFew(t *testing.T) {
	var out bytes.Buffer
	c := newLimiter(slog.NewTextHandler(&out, nil))
	now := time.Unix(7, 0)
	for i := range 1000 {
		pass, left := c.admit("alike", now)
		if pass != (i < alikeAtOnce) || left != 0 {
			t.Fatalf("warning %d: passed on is %v, %d left out", i, pass, left)
		}
	}
	if pass, left := c.admit("other", now); !pass || left != 0 {
		t.Errorf("another warning: passed on is %v, %d left out", pass, left)
	}
	heard, told := 0, 0
	for range 600 { // a minute of ten a second
		now = now.Add(alikeEvery / 100)
		if pass, left := c.admit("alike", now); pass {
			heard, told = heard+1, told+left
		}
	}
	if all := 1000 - alikeAtOnce + 600 - heard; heard != 6 || told != all {
		t.Errorf("in a minute %d are passed on, and %d of %d are said to be left out", heard, told, all)
	}
	now = now.Add(alikeAtOnce * alikeEvery)
	if pass, left := c.admit("alike", now); !pass || left != 0 {
		t.Errorf("after a while: passed on is %v, %d left out", pass, left)
	}
	for i := range 2 * mostTexts {
		c.admit(fmt.Sprint("text ", i), now)
	}
	if len(c.texts) > mostTexts {
		t.Errorf("%d texts are counted", len(c.texts))
	}
	for i := range mostTexts {
		if c.admit(fmt.Sprint("later ", i), now.Add(time.Hour)); c.texts["later 0"] == nil {
			t.Fatal("texts of the past leave no room")
		}
	}
	log := slog.New(c)
	for range 100 {
		log.With("agent", "a").Error("wrong")
	}
	if n := strings.Count(out.String(), "level=ERROR msg=wrong agent=a"); n != 100 {
		t.Errorf("%d of 100 errors were heard", n)
	}
}
