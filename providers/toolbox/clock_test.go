package toolbox

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/providers/tool"
)

func TestClock(t *testing.T) {
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	clock := ClockAt(func() time.Time { return noon })
	tests := []struct{ arguments, want string }{
		{`{}`, "2026-07-01T12:00:00Z"},
		{`{"timezone":""}`, "2026-07-01T12:00:00Z"},
		{`{"timezone":"utc"}`, "2026-07-01T12:00:00Z"},
		{`{"timezone":"Europe/Berlin"}`, "2026-07-01T14:00:00+02:00"},
		{`{"timezone":"Berlin"}`, "2026-07-01T14:00:00+02:00"},
		{`{"timezone":"New York"}`, "2026-07-01T08:00:00-04:00"},
		{`{"timezone":"+05:30"}`, "2026-07-01T17:30:00+05:30"},
		{`{"timezone":"UTC-3"}`, "no time zone"},
		{`{"timezone":"UTC-03"}`, "2026-07-01T09:00:00-03:00"},
		{`{"timezone":"Atlantis"}`, `no time zone is named "Atlantis"`},
		{`{"timezone":"../../etc/passwd"}`, "no time zone"},
		{`{"timezone":"` + strings.Repeat("a", 1000) + `"}`, "no time zone"},
	}
	for _, test := range tests {
		got, err := clock.Call(context.Background(), json.RawMessage(test.arguments))
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s gives %q; want %q", test.arguments, got, test.want)
		}
	}
}

func TestByName(t *testing.T) {
	if !slices.IsSorted(Names()) {
		t.Errorf("the names %q are not sorted", Names())
	}
	for _, name := range Names() {
		b, ok := ByName(name)
		if !ok || b.Spec().Name != name || b.Spec().OnUnknown != tool.ReadOnly {
			t.Errorf("%s is a tool with the spec %+v", name, b.Spec())
		}
	}
	if _, ok := ByName("abacus"); ok {
		t.Error("abacus: found a tool, want none")
	}
	echo, _ := ByName("echo")
	if got, err := echo.Call(context.Background(), json.RawMessage(`{"text":"hé"}`)); got != "hé" || err != nil {
		t.Errorf("echo says %q, %v", got, err)
	}
}
