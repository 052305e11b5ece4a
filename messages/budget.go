package messages

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Cost is money in billionths of the unit of the price table, usually a dollar. It is a
// whole number, so that sums do not depend on their order.
type Cost int64

// CostOf returns the cost of an amount in whole units, such as 0.25; at most a thousand
// million.
func CostOf(amount float64) Cost {
	return Cost(math.Round(min(max(amount, -maxCost), maxCost) * 1e9))
}

// maxCost allows nine such amounts to be added.
const maxCost = 1e9

// Plus returns the sum, or the largest Cost: servers may report absurd numbers.
func (c Cost) Plus(d Cost) Cost {
	if d > 0 && c > math.MaxInt64-d {
		return math.MaxInt64
	}
	return c + d
}

// String returns the amount in whole units.
func (c Cost) String() string { return strconv.FormatFloat(float64(c)/1e9, 'f', -1, 64) }

// Limit is the name of a limit.
type Limit string

// The limits.
const (
	LimitSteps    Limit = "max_steps"    // model calls
	LimitTokens   Limit = "max_tokens"   // tokens, input and output together
	LimitCost     Limit = "max_cost"     // cost by the price table
	LimitDuration Limit = "max_duration" // time
)

// Scope is what a limit is about.
type Scope string

// The scopes.
const (
	ScopeTurn  Scope = "turn"  // one turn
	ScopeAgent Scope = "agent" // all turns of the agent
)

// Limits bound what a turn or an agent may use. A zero value is no limit.
type Limits struct {
	// MaxSteps is the most model calls, attempts not counted.
	MaxSteps int `json:"max_steps,omitempty"`
	// MaxTokens is the most tokens, input and output together.
	MaxTokens int `json:"max_tokens,omitempty"`
	// MaxCost is the highest cost in billionths of the unit of the price table.
	MaxCost Cost `json:"max_cost_nanos,omitempty"`
	// MaxDuration is how long it may run, in milliseconds. Waiting for a person or in the queue does not
	// count; time in which no node ran it does.
	MaxDuration int64 `json:"max_duration_ms,omitempty"`
}

// Sets reports whether l sets the limit.
func (l Limits) Sets(limit Limit) bool {
	switch limit {
	case LimitSteps:
		return l.MaxSteps != 0
	case LimitTokens:
		return l.MaxTokens != 0
	case LimitCost:
		return l.MaxCost != 0
	case LimitDuration:
		return l.MaxDuration != 0
	}
	return false
}

// Override returns l with every limit that r sets.
func (l Limits) Override(r Limits) Limits {
	if r.MaxSteps != 0 {
		l.MaxSteps = r.MaxSteps
	}
	if r.MaxTokens != 0 {
		l.MaxTokens = r.MaxTokens
	}
	if r.MaxCost != 0 {
		l.MaxCost = r.MaxCost
	}
	if r.MaxDuration != 0 {
		l.MaxDuration = r.MaxDuration
	}
	return l
}

// LimitOverrides are limits as a person writes them in a command: whole units of money
// and a duration such as 10m. Zero values leave the old limit.
type LimitOverrides struct {
	// MaxSteps is the most model calls; the attempts at one call count as one. 0: not changed.
	MaxSteps int `json:"max_steps,omitempty"`
	// MaxTokens is the most tokens, input and output together. 0: not changed.
	MaxTokens int `json:"max_tokens,omitempty"`
	// MaxCost is the highest cost, in whole units of the price table, such as 0.25; at least
	// 0.000000001, at most 1,000,000,000. 0: not changed.
	MaxCost float64 `json:"max_cost,omitempty"`
	// MaxDuration is how long the turn, or all turns of the agent, may run, at least `1ms`; a
	// fraction of a millisecond is dropped. Time in the queue or waiting for a person does not count; time in which
	// no node runs does. 0: not changed.
	MaxDuration Span `json:"max_duration,omitempty"`
}

// Limits returns r in the units of events.
func (r LimitOverrides) Limits() Limits {
	return Limits{r.MaxSteps, r.MaxTokens, CostOf(r.MaxCost), time.Duration(r.MaxDuration).Milliseconds()}
}

func (r LimitOverrides) check(where string) error {
	switch {
	case r.MaxSteps < 0:
		return Refuse(BadInput, "%smax_steps is %d: it must be positive", where, r.MaxSteps)
	case r.MaxTokens < 0:
		return Refuse(BadInput, "%smax_tokens is %d: it must be positive", where, r.MaxTokens)
	case r.MaxCost < 0 || r.MaxCost > maxCost:
		return Refuse(BadInput, "%smax_cost is %v: write an amount from 0 to 1000000000", where, r.MaxCost)
	case r.MaxCost != 0 && CostOf(r.MaxCost) == 0:
		return Refuse(BadInput, "%smax_cost is %v, which rounds to nothing", where, r.MaxCost)
	case r.MaxDuration < 0:
		return Refuse(BadInput, "%smax_duration is negative", where)
	case r.MaxDuration != 0 && r.Limits().MaxDuration == 0:
		return Refuse(BadInput, "%smax_duration is %s: write at least 1ms", where, time.Duration(r.MaxDuration))
	}
	return nil
}

// Span is a duration that JSON writes as "10m".
type Span time.Duration

// MarshalJSON writes the duration as Go does.
func (s Span) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).String()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Span) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return Refuse(BadInput, "a duration is written as text, such as \"30s\" or \"10m\"")
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return Refuse(BadInput, "duration %q: write a number with a unit, such as 30s or 10m", text)
	}
	*s = Span(d)
	return nil
}

// Price is the price of a model's tokens, in whole units for a million.
type Price struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	// Cached is the price of input that the server had cached, CacheWrite that of input that it
	// caches. Nil: Input.
	Cached     *float64 `json:"cached,omitempty"`
	CacheWrite *float64 `json:"cache_write,omitempty"`
}

// Cost returns the price of a usage.
func (p Price) Cost(u Usage) Cost {
	cached, written := p.Input, p.Input
	if p.Cached != nil {
		cached = *p.Cached
	}
	if p.CacheWrite != nil {
		written = *p.CacheWrite
	}
	u = u.Clamped()
	perMillion := float64(u.Input-u.Cached-u.CacheWrite)*p.Input + float64(u.Cached)*cached + float64(u.CacheWrite)*written + float64(u.Output)*p.Output
	return CostOf(perMillion / 1e6)
}

// HashArguments returns the digest by which a decision names the arguments of a call.
func HashArguments(arguments string) string { return string(DigestOf([]byte(arguments))) }

// Tokens returns the sum of input and output.
func (u Usage) Tokens() int { return u.Input + u.Output }
