package cron_test

import (
	"fmt"
	"log"
	"time"

	"github.com/reprise-dev/reprise/messages/cron"
)

// Nine o'clock on working days in Berlin, over the change of the clocks on 29 March 2026.
func ExampleParse() {
	line, err := cron.Parse("0 9 * * 1-5", "Europe/Berlin")
	if err != nil {
		log.Fatal(err)
	}
	t := time.Date(2026, 3, 26, 12, 0, 0, 0, time.UTC)
	for range 2 {
		t = line.Next(t)
		fmt.Println(t.UTC().Format("Mon 2 Jan 15:04"))
	}
	_, err = cron.Parse("0 25 * * *", "")
	fmt.Println(err)
	// Output:
	// Fri 27 Mar 08:00
	// Mon 30 Mar 07:00
	// cron "0 25 * * *": field 2, the hour, is "25": write 0-23, or *, a list such as 1,2, a range such as 1-3 or a step such as */2
}
