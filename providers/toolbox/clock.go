package toolbox

import (
	"context"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a bare container knows the zones too

	"github.com/reprise-dev/reprise/providers/tool"
)

// Clock returns the time, in UTC or another zone. Its OnUnknown is tool.ReadOnly.
func Clock() tool.Tool { return ClockAt(time.Now) }

// ClockAt is [Clock] with now in place of time.Now.
func ClockAt(now func() time.Time) tool.Tool {
	type clock struct {
		Timezone string `json:"timezone,omitempty" jsonschema:"An IANA time zone such as Europe/Berlin, a city or an offset such as +02:00; UTC if left out"`
	}
	return tool.New("clock", "Tell the current date and time", tool.ReadOnly, func(_ context.Context, c clock) (string, error) {
		zone, err := location(c.Timezone)
		if err != nil {
			return "", err
		}
		return now().In(zone).Format(time.RFC3339), nil
	})
}

// regions are the first halves of zone names that a city is tried with.
var regions = []string{"", "Europe/", "America/", "Asia/", "Africa/", "Australia/", "Pacific/", "Atlantic/", "Indian/"}

// location is the zone of an IANA name, an offset or a city.
func location(name string) (*time.Location, error) {
	name = strings.TrimSpace(name)
	switch strings.ToUpper(name) {
	case "", "UTC", "GMT", "Z":
		return time.UTC, nil
	}
	offset := strings.TrimPrefix(strings.TrimPrefix(strings.ToUpper(name), "UTC"), "GMT")
	for _, layout := range []string{"-07:00", "-0700", "-07"} {
		if t, err := time.Parse(layout, offset); err == nil {
			_, seconds := t.Zone()
			return time.FixedZone("", seconds), nil
		}
	}
	if len(name) < 64 { // no zone has a longer name
		place := strings.ReplaceAll(name, " ", "_")
		for _, region := range regions {
			if zone, err := time.LoadLocation(region + place); err == nil {
				return zone, nil
			}
		}
	}
	return nil, fmt.Errorf("no time zone is named %.64q: write an IANA name such as Europe/Berlin, an offset such as +02:00, or UTC", name)
}
