package toolbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/reprise-dev/reprise/providers/toolbox"
)

func ExampleCalculator() {
	fmt.Println(toolbox.Calculator().Call(context.Background(), json.RawMessage(`{"expression":"(3+4)^2 / 7"}`)))
	// Output: 7 <nil>
}

// A clock for tests and demonstrations.
func ExampleClockAt() {
	clock := toolbox.ClockAt(func() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) })
	fmt.Println(clock.Call(context.Background(), json.RawMessage(`{"timezone":"Europe/Berlin"}`)))
	// Output: 2026-01-02T13:00:00+01:00 <nil>
}

// The tools that a configuration names.
func ExampleByName() {
	fmt.Println(toolbox.Names())
	echo, ok := toolbox.ByName("echo")
	fmt.Println(echo.Spec().OnUnknown, ok)
	// Output:
	// [calculator clock echo]
	// read_only true
}
