package actors

import (
	"log/slog"
	"sync"
	"time"
)

// limited writes warnings that many agents may have at the same time, such as
// when NATS is away: at most a few a second, and how many were left out. The
// zero value is ready. Safe for concurrent use.
type limited struct {
	mu      sync.Mutex
	second  int64
	written int
	left    int
}

// perSecond is how many warnings are written each second.
const perSecond = 5

func (l *limited) warn(to *slog.Logger, message string, args ...any) {
	l.mu.Lock()
	now := time.Now().Unix()
	if now != l.second {
		l.second, l.written = now, 0
	}
	l.written++
	if l.written > perSecond {
		l.left++
		l.mu.Unlock()
		return
	}
	left := l.left
	l.left = 0
	l.mu.Unlock()
	if left > 0 {
		args = append(args, "alike_left_out", left)
	}
	to.Warn(message, args...)
}
