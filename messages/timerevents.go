package messages

import "time"

// TimerSet sets a timer. It survives restarts.
type TimerSet struct {
	// Turn is the turn that the timer belongs to. Empty: it belongs to the agent.
	Turn TurnID `json:"turn"`
	// Timer is the name of the timer, unique among those of the turn, or of the agent.
	Timer string `json:"timer"`
	// For is the purpose: `retry`, `approval` or `duration` of a turn, `input` of the agent.
	For string `json:"for"`
	// Call is the call that waits for the timer. Empty: none.
	Call CallID `json:"call,omitempty"`
	// Set is when the timer was set.
	Set time.Time `json:"set"`
	// At is when it is due.
	At time.Time `json:"at"`
	// Input is the scheduled input without its schedule. If it is repeated, each time has an id of its
	// own. Nil: a timer with a cron line is set again for the same input.
	Input *Input `json:"input,omitempty"`
	// Cron is the cron line of a repeated input. Empty: it is not repeated.
	Cron string `json:"cron,omitempty"`
	// Zone is the time zone of the cron line. Empty: UTC.
	Zone string `json:"tz,omitempty"`
}

// EventType returns "timer.set".
func (TimerSet) EventType() string { return "timer.set" }

// TimerFired records that a timer was due and has fired.
type TimerFired struct {
	// Turn is the turn that the timer belongs to. Empty: it belongs to the agent.
	Turn TurnID `json:"turn"`
	// Timer is the name of the timer.
	Timer string `json:"timer"`
	// Ran is the time since it was set, in milliseconds.
	Ran int64 `json:"ran_ms"`
	// Input is the id of the scheduled input.
	Input string `json:"input,omitempty"`
	// Missed is how many later times of its cron line have passed, too, up to 1000. The
	// timer fires once for all of them.
	Missed int `json:"missed,omitempty"`
	// Refused is why the input was not accepted. Empty: it was.
	Refused string `json:"refused,omitempty"`
	// Reply is the reply subject of the input. Empty: none.
	Reply string `json:"reply,omitempty"`
}

// EventType returns "timer.fired".
func (TimerFired) EventType() string { return "timer.fired" }

// TimerCancelled records that a timer will not fire.
type TimerCancelled struct {
	// Turn is the turn that the timer belongs to. Empty: it belongs to the agent.
	Turn TurnID `json:"turn"`
	// Timer is the name of the timer.
	Timer string `json:"timer"`
	// Ran is the time since it was set, in milliseconds.
	Ran int64 `json:"ran_ms"`
	// By is what cancelled an agent's timer: `cancel`, `clear`, `delete`, or `cron` for a line that
	// has no next time.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Input is the id of the input that had set it. Empty: none.
	Input string `json:"input,omitempty"`
	// Reply is the reply subject of the input. Empty: none.
	Reply string `json:"reply,omitempty"`
}

// EventType returns "timer.cancelled".
func (TimerCancelled) EventType() string { return "timer.cancelled" }
