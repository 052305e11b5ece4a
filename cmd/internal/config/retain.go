package config

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// day is the unit of long durations.
const day = 24 * time.Hour

// retain reads how long an agent may rest.
func (r *reader) retain(n *node, a *AgentConfig) {
	r.places[spot("retain", a.Kind)] = n.at
	r.days("retain", &a.Retain)(n)
}

// Unarchived is what is wrong with the file for a node that has no data folder:
// agents are to be archived, and it does not say where. Nil: nothing is.
func (c *Config) Unarchived() error {
	found := &collector{file: c.File}
	for _, a := range c.Agents {
		if a.Retain > 0 && c.RetainTo == "" {
			found.add(c.places[spot("retain", a.Kind)], "add retain_to: and a folder at the top of the file, or remove retain",
				"agents of kind %s are to be archived after a time, and a node without a data folder (--nats) has no place for that", shown(a.Kind))
		}
	}
	return found.err()
}

// days reads a duration that may be written in days, such as 400d.
func (r *reader) days(name string, into *time.Duration) func(*node) {
	return func(n *node) {
		number, inDays := strings.CutSuffix(n.text, "d")
		if n.kind != text || !inDays {
			r.duration(name, into)(n)
			return
		}
		d, err := strconv.ParseFloat(number, 64)
		if err != nil || !(d > 0) || d*float64(day) > math.MaxInt64 {
			r.add(n.at, "write a number with a unit, such as 400d or 12h", "%s is not a duration", name)
			return
		}
		*into = time.Duration(d * float64(day))
	}
}

// retainTo reads the folder that agents are archived in.
func (r *reader) retainTo(n *node) {
	before := len(r.found)
	r.path("retain_to", &r.config.RetainTo)(n)
	if r.config.RetainTo == "" && len(r.found) == before && n.kind == text {
		r.add(n.at, "write a path, or remove the line", "retain_to is empty")
	}
}
