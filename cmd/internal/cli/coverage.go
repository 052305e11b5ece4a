package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// coverage is what a view of all agents does not show. The zero value lacks nothing.
type coverage map[messages.Partition]messages.Uncovered

// take notes what a page lacks.
func (c *coverage) take(l client.Lacks) {
	if *c == nil {
		*c = make(coverage)
	}
	for _, u := range l.Uncovered {
		(*c)[u.Partition] = u
	}
}

// uncovered is the line behind those of a view that is not whole, with -o json. Its names are promises.
type uncovered struct {
	Type      string               `json:"type"` // uncovered
	Uncovered []messages.Uncovered `json:"uncovered"`
}

// covered returns err, or that a view is not whole: with -o json a last line says so, too.
func (a *app) covered(of coverage, err error) error {
	if err != nil || len(of) == 0 {
		return err
	}
	last := uncovered{Type: "uncovered"}
	var texts []string
	for _, p := range slices.Sorted(maps.Keys(of)) {
		last.Uncovered = append(last.Uncovered, of[p])
		texts = append(texts, of[p].String())
	}
	if a.json() {
		if err := a.object(last); err != nil {
			return err
		}
	}
	return fail("what is shown is all of the other partitions; try again, and see `"+a.started+" partitions`", "%s", strings.Join(texts, "\n"))
}
