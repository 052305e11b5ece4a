package cli

import (
	"fmt"
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
	for _, p := range slices.Sorted(maps.Keys(of)) {
		last.Uncovered = append(last.Uncovered, of[p])
	}
	if a.json() {
		if err := a.object(last); err != nil {
			return err
		}
	}
	return fail("the other partitions are shown in full; try again, and see `"+a.started+" partitions`", "%s", strings.Join(lacking(last.Uncovered), "\n"))
}

// lacking returns a line for each thing that is said of partitions, which are in their order.
func lacking(list []messages.Uncovered) (lines []string) {
	for len(list) > 0 {
		first := list[0]
		var same, others []messages.Uncovered
		for _, u := range list {
			if u.What() == first.What() {
				same = append(same, u)
			} else {
				others = append(others, u)
			}
		}
		line := first.String()
		if len(same) > 1 {
			line = fmt.Sprintf("each of partitions %s %s", ranges(same), first.What())
		}
		lines, list = append(lines, line), others
	}
	return lines
}

// ranges names partitions, which are in their order, as in "3, 7, 12-15".
func ranges(list []messages.Uncovered) string {
	var parts []string
	for len(list) > 0 {
		first, n := list[0].Partition, 1
		for n < len(list) && list[n].Partition == first+messages.Partition(n) {
			n++
		}
		part := first.String()
		if n > 1 {
			part += "-" + list[n-1].Partition.String()
		}
		parts, list = append(parts, part), list[n:]
	}
	return strings.Join(parts, ", ")
}
