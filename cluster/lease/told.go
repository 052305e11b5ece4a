package lease

import (
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// given is what was handed over and not told yet: however many partitions go at once,
// that is one line.
type given struct {
	underWay int       // how many are being handed over
	since    time.Time // the first was begun
	gone     []string  // partitions, with their epochs
	to       map[string]int
}

// begin notes that a partition is about to be handed over.
func (g *given) begin() {
	if g.underWay++; g.underWay == 1 && len(g.gone) == 0 {
		g.since = time.Now()
	}
}

// end notes that a partition is being handed over no more.
func (l *Leases) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given.underWay--
}

// gave notes that a partition was handed over.
func (l *Leases) gave(p messages.Partition, epoch messages.Epoch, to string, began time.Time) {
	l.cfg.Logger.Debug("a partition was handed over", "partition", p, "epoch", epoch, "to", to, "took", time.Since(began))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given.to == nil {
		l.given.to = make(map[string]int)
	}
	l.given.to[to]++
	l.given.gone = append(l.given.gone, withEpoch(p, epoch))
}

// tellGiven says what was handed over, once nothing is on its way. l.mu is held.
func (l *Leases) tellGiven() {
	g := l.given
	if g.underWay > 0 || len(g.gone) == 0 {
		return
	}
	l.given = given{}
	slices.Sort(g.gone)
	l.cfg.Logger.Info("partitions were handed over", "partitions", len(g.gone), "to", g.to, "took", time.Since(g.since), "partitions@epochs", strings.Join(g.gone, " "))
}
