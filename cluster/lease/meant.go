package lease

import "github.com/reprise-dev/reprise/messages"

// Meant is the member that is to have each partition, as this node sees it: the one
// that has it, or will have it once partitions are even again. Empty: nobody.
func (l *Leases) Meant() [messages.Partitions]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.plan()
}
