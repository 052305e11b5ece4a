package turn

import "github.com/reprise-dev/reprise/projections"

// same reports whether two texts are the same JSON value. Each text is parsed once in a decision:
// an answer may hold many calls.
func (d *decision) same(a, b string) bool { return a == b || d.canonical(a) == d.canonical(b) }

func (d *decision) canonical(s string) string {
	c, ok := d.spelt[s]
	if !ok {
		if d.spelt == nil {
			d.spelt = make(map[string]string)
		}
		c = projections.CanonicalJSON(s)
		d.spelt[s] = c
	}
	return c
}
