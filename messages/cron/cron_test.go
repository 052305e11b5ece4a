package cron

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // for the zones of the cases
)

// next returns the n times after from, in the zone.
func next(t *testing.T, line, zone, from string, n int) (list string) {
	t.Helper()
	c, err := Parse(line, zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, from)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		at = c.Next(at)
		list += " " + at.In(c.zone).Format("02T15:04Z07")
	}
	return strings.TrimSpace(list)
}

func TestNext(t *testing.T) {
	const berlin = "Europe/Berlin"
	for _, tc := range []struct{ line, zone, from, want string }{
		{"0 9 * * 1-5", "", "2026-11-20T09:00:00Z", "23T09:00Z 24T09:00Z 25T09:00Z"},
		{"0 9 * * 1-5", berlin, "2026-11-20T07:59:59Z", "20T09:00+01 23T09:00+01 24T09:00+01"},
		{"0,30 9 * * SUN", "", "2026-11-21T00:00:00Z", "22T09:00Z 22T09:30Z 29T09:00Z"},
		{" 0  9 1 * * ", "", "2026-11-21T00:00:00Z", "01T09:00Z 01T09:00Z 01T09:00Z"},
		{"@daily", "", "2026-11-21T10:00:00Z", "22T00:00Z 23T00:00Z 24T00:00Z"},
		{"0 9 1 * 1", "", "2026-11-28T00:00:00Z", "30T09:00Z 01T09:00Z 07T09:00Z"},
		// Clocks set forward on the 29th of March, back on the 25th of October.
		{"30 2 * * *", berlin, "2026-03-28T12:00:00Z", "29T03:30+02 30T02:30+02 31T02:30+02"},
		{"30 2 * * *", berlin, "2026-10-24T12:00:00Z", "25T02:30+02 26T02:30+01 27T02:30+01"},
		{"30 2 * * *", berlin, "2026-10-25T00:30:00Z", "26T02:30+01 27T02:30+01 28T02:30+01"},
		{"* 2 * * *", berlin, "2026-10-25T00:58:00Z", "25T02:59+02 26T02:00+01 26T02:01+01"},
		{"30 * * * *", berlin, "2026-10-24T23:45:00Z", "25T02:30+02 25T02:30+01 25T03:30+01"},
		{"@hourly", berlin, "2026-10-24T23:45:00Z", "25T02:00+02 25T02:00+01 25T03:00+01"},
		{"0 0 * * *", "Africa/Cairo", "2026-04-22T12:00:00Z", "23T00:00+02 24T01:00+03 25T00:00+03"},
		{"0 0 * * *", "Pacific/Apia", "2011-12-28T12:00:00Z", "29T00:00-10 31T00:00+14 01T00:00+14"},
		{"20,35 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", "04T02:35+11 04T02:50+11 05T02:20+11"},
		{"0 9 29 2 *", "Australia/Lord_Howe", "2026-11-21T00:00:00Z", "29T09:00+11 29T09:00+11 29T09:00+11"},
		{"0 9 29 2 *", "", "2026-11-21T00:00:00Z", "29T09:00Z 29T09:00Z 29T09:00Z"},
	} {
		if got := next(t, tc.line, tc.zone, tc.from, 3); got != tc.want {
			t.Errorf("%q in %q after %s: got %s, want %s", tc.line, tc.zone, tc.from, got, tc.want)
		}
	}
}

// A line that names one time of the day fires once a day, also when clocks change.
func TestOnceADay(t *testing.T) {
	for _, zone := range strings.Fields(`UTC Europe/Berlin Europe/Dublin America/New_York America/Havana America/Santiago Africa/Cairo
		Africa/Casablanca Asia/Beirut Asia/Kathmandu Australia/Lord_Howe Antarctica/Troll`) {
		for _, line := range []string{"0 0 * * *", "15 0 * * *", "30 1 * * *", "30 2 * * *", "59 23 * * *"} {
			c, err := Parse(line, zone)
			if err != nil {
				t.Fatal(err)
			}
			at := time.Date(2026, 1, 1, 0, 0, 0, 0, c.zone).Add(-time.Second)
			for day := range 365 {
				at = c.Next(at).In(c.zone)
				if at.YearDay() != day+1 {
					t.Fatalf("%q in %s: got %s, want a time on day %d", line, zone, at, day+1)
				}
			}
		}
	}
}

func TestParseRefuses(t *testing.T) { // A102
	for line, want := range map[string]string{
		"":                           "is empty",
		"0 9 * *":                    "has 4 fields",
		"0 0 9 * * 1":                "has 6 fields",
		"60 * * * *":                 "field 1, the minute",
		"0 24 * * *":                 "field 2, the hour",
		"0 9 0 * *":                  "field 3, the day of the month",
		"0 9 * 13 *":                 "field 4, the month",
		"0 9 * * MOZ":                "field 5, the day of the week",
		"0 9 L * *":                  "field 3",
		"*/0 * * * *":                "field 1",
		"H 9 * * *":                  "field 1",
		"@every 1s":                  "write one of @hourly",
		"@daily x":                   "write one of @hourly",
		"@reboot":                    "write one of @hourly",
		"TZ=UTC 0 9 * *":             "set tz",
		"0 0 30 2 *":                 "never comes",
		strings.Repeat("0,", 130):    "260 bytes",
		"\x00 * * * *":               "field 1",
		"0 9 * * 1-5 \u00e9":         "has 6 fields",
		"1-2-3 * * * *":              "field 1",
		"99999999999999999 * * * * ": "field 1",
	} {
		_, err := Parse(line, "")
		wantRefusal(t, line, err, want)
	}
	for _, zone := range []string{"Berlin", "Local", "../etc/passwd", "europe/berlin "} {
		_, err := Parse("@daily", zone)
		wantRefusal(t, zone, err, "IANA")
	}
}

func wantRefusal(t *testing.T, text string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%q: got error %v, want %q", text, err, want)
	}
}

func FuzzNext(f *testing.F) {
	f.Add("0 9 * * 1-5", "Europe/Berlin")
	f.Add("*/5,7 1-3/2 L JAN-DEC 5#2", "UTC")
	f.Fuzz(func(t *testing.T, line, zone string) {
		c, err := Parse(line, zone)
		if err != nil {
			return
		}
		from := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
		for range 5 {
			at := c.Next(from)
			if !at.After(from) {
				t.Fatalf("%q: got %s, want a time after %s", line, at, from)
			}
			from = at
		}
	})
}
