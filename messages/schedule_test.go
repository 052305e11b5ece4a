package messages

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // for the zones of the cases
)

func TestParseSchedules(t *testing.T) { // A102
	in, err := ParseInput(testAgent, headers(HeaderCron, "0 9 * * *", HeaderZone, "Europe/Berlin", HeaderTimer, "daily"), []byte("Good morning"))
	if err != nil || in.Schedule != (Schedule{Cron: "0 9 * * *", Zone: "Europe/Berlin", Name: "daily"}) || in.Content.Text() != "Good morning" {
		t.Errorf("got %+v, error %v", in, err)
	}
	in, err = ParseInput(testAgent, headers(HeaderIn, "1h"), []byte(`{"content":"x","in":"90m"}`))
	if err != nil || in.In != Span(90*time.Minute) {
		t.Errorf("got %+v, error %v", in, err)
	}
	in, err = ParseInput(testAgent, headers(HeaderAt, "2026-11-22T09:00:00+01:00"), []byte("x"))
	if err != nil || !in.At.Equal(time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)) || in.At.Location() != time.UTC {
		t.Errorf("got %+v, error %v", in, err)
	}
	for _, tc := range []bodyCase{
		{"two times", nil, `{"content":"x","in":"1h","cron":"@daily"}`, BadInput, "exclude one another"},
		{"an invalid duration", nil, `{"content":"x","in":"soon"}`, BadInput, "with a unit"},
		{"an invalid duration in a header", headers(HeaderIn, "soon"), "x", BadInput, "90m"},
		{"an invalid time in a header", headers(HeaderAt, "9:00"), "x", BadInput, "RFC 3339"},
		{"before now", nil, `{"content":"x","in":"-1h"}`, BadInput, "positive"},
		{"too far", nil, `{"content":"x","in":"87673h"}`, BadInput, "ten years"},
		{"a name without a schedule", nil, `{"content":"x","name":"daily"}`, BadInput, "set in, at or cron"},
		{"a zone without a cron line", nil, `{"content":"x","in":"1h","tz":"UTC"}`, BadInput, "of a cron line"},
		{"a name with a newline", nil, `{"content":"x","in":"1h","name":"a\nb"}`, BadInput, "control characters"},
		{"a long name", nil, `{"content":"x","in":"1h","name":"` + strings.Repeat("n", MaxID+1) + `"}`, BadInput, "257 bytes"},
		{"an invalid field", nil, `{"content":"x","cron":"0 24 * * *"}`, BadInput, "field 2, the hour"},
		{"an unknown zone", nil, `{"content":"x","cron":"@daily","tz":"Berlin"}`, BadInput, "IANA"},
		{"a deadline with a cron line", nil, `{"content":"x","cron":"@daily","deadline":"2026-11-22T09:00:00Z"}`, BadInput, "no last moment"},
		{"a reserved id", nil, `{"content":"x","id":"timer:daily:7"}`, BadInput, `begins with "timer:"`},
	} {
		_, err := ParseInput(testAgent, tc.headers(), []byte(tc.body))
		tc.checkRefusal(t, err)
	}
	for _, body := range []string{`{"type":"cancel"}`, `{"type":"cancel","timer":"a","all":true}`} {
		_, err := ParseCommand(testAgent, headers(), []byte(body))
		bodyCase{name: body, code: BadInput, want: "cancel names"}.checkRefusal(t, err)
	}
	if c, err := ParseCommand(testAgent, headers(), []byte(`{"type":"cancel","id":"k","timer":"daily","reason":"r"}`)); err != nil || c != (Cancel{ID: "k", Timer: "daily", Reason: "r"}) {
		t.Errorf("cancel: got %+v, error %v", c, err)
	}
}
