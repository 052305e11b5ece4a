package gateway

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// The bounds of what is kept for readers, who may be gone.
const (
	cursorsAtOnce = 8
	cursorFor     = 30 * time.Second
)

// cursors keeps what a view's next page is made of for the reader who has its
// cursor, so that not each page folds the log from its first event on. It is a
// cache: a reader who comes too late, or to another node, waits longer. The zero
// value is empty. Safe for concurrent use.
type cursors struct {
	mu   sync.Mutex
	kept []unread // oldest first
}

// unread is the rest of a view: whatever the view itself has made.
type unread struct {
	cursor string
	of     string
	rest   any
	timer  *time.Timer
}

// viewOf is what the pages of one view have in common.
func viewOf(a messages.AgentID, q messages.Query) string {
	q.From, q.Limit, q.Cursor = 0, 0, ""
	b, _ := json.Marshal(q) // a query came as JSON
	return a.Full() + " " + string(b)
}

// keep returns the cursor under which rest will be found, for a while.
func (b *cursors) keep(of string, rest any) (cursor string) {
	cursor = rand.Text()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, unread{cursor, of, rest, time.AfterFunc(cursorFor, func() { b.take(of, cursor) })})
	if len(b.kept) > cursorsAtOnce {
		b.kept[0].timer.Stop()
		b.kept = slices.Delete(b.kept, 0, 1)
	}
	return cursor
}

// take returns what was kept, once; nil if there is nothing.
func (b *cursors) take(of, cursor string) (rest any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.kept, func(u unread) bool { return u.cursor == cursor && u.of == of })
	if i < 0 {
		return nil
	}
	u := b.kept[i]
	u.timer.Stop()
	b.kept = slices.Delete(b.kept, i, i+1)
	return u.rest
}

// restOf is what the page before has left for this one; false if it is gone.
func restOf[T any](g *Gateway, a messages.AgentID, q messages.Query) (rest T, is bool) {
	if q.Cursor == "" {
		return rest, false
	}
	rest, is = g.cursors.take(viewOf(a, q), q.Cursor).(T)
	return rest, is
}
