package integrity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/natslog"
)

// FindCopies returns doctor's findings about streams that have no leader, whose copies are behind, or that
// have fewer copies than others.
func (g *Monitor) FindCopies(ctx context.Context) (found []doctor.Finding) {
	all, err := g.log.Copies(ctx)
	if err != nil {
		return []doctor.Finding{{Check: "store", Status: doctor.Fail, Detail: err.Error()}}
	}
	return judged(all)
}

// judged returns findings about streams as they are kept.
func judged(all []natslog.Copies) (found []doctor.Finding) {
	add := func(status, remedy, format string, args ...any) {
		found = append(found, doctor.Finding{Check: "store", Status: status, Detail: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	most := 1
	for _, c := range all {
		most = max(most, c.Replicas)
	}
	var fewer []string
	for _, c := range all {
		switch {
		case c.Err != nil || c.Leader == "":
			add(doctor.Fail, "see that most servers of the cluster run, with `nats server report jetstream`", "stream %s has no leader, or does not answer: nothing in it can be read or written", c.Stream)
		case len(c.Behind) > 0:
			add(doctor.Warn, "one more failure may stop it: check that all servers run; after a restart a server catches up automatically", "copies of stream %s are not all current: %s", c.Stream, strings.Join(c.Behind, ", "))
		}
		if c.Err == nil && c.Replicas < most {
			fewer = append(fewer, fmt.Sprintf("%s has %d", c.Stream, c.Replicas))
		}
	}
	slices.Sort(fewer)
	if len(fewer) > 0 {
		add(doctor.Warn, fmt.Sprintf("run `reprise store scale --replicas %d`", most), "streams have different numbers of copies, up to %d: %s", most, strings.Join(fewer, ", "))
	}
	return found
}
