package cluster

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// recovered is what owners begin to recover and have not logged yet: partitions come many at a
// time, and one line names them. The zero value is empty. Safe for concurrent use.
type recovered struct {
	mu     sync.Mutex
	agents int
	in     []string // partitions, with their epochs
}

// toldAfter is for how long what is recovered is gathered into one line.
const toldAfter = time.Second

// tell logs that agents of a partition owe work and are recovered, and that others only repeat
// what may not have been received.
func (r *recovered) tell(to *slog.Logger, p messages.Partition, epoch messages.Epoch, open, again int) {
	if open+again > 0 {
		to.Debug("agents are activated", "partition", p, "epoch", epoch, "owing", open, "again", again)
	}
	if open == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agents += open
	if r.in = append(r.in, fmt.Sprintf("%s@%d", p, epoch)); len(r.in) == 1 {
		time.AfterFunc(toldAfter, func() { r.flush(to) })
	}
}

// flush logs what there is.
func (r *recovered) flush(to *slog.Logger) {
	r.mu.Lock()
	agents, in := r.agents, r.in
	r.agents, r.in = 0, nil
	r.mu.Unlock()
	if len(in) > 0 {
		slices.Sort(in)
		to.Info("agents with open work are recovered", "agents", agents, "partitions@epochs", strings.Join(in, " "))
	}
}
