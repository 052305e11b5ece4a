package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// logger hands the server's lines at warning and above to slog, and keeps the
// first fatal one: the server expects to be dead after it.
type logger struct {
	to    *slog.Logger
	mu    sync.Mutex
	first error
}

func (l *logger) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// Fatalf keeps the first line and logs it as an error.
func (l *logger) Fatalf(format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = errors.New(line)
	}
	l.to.Error("NATS server: " + line)
}

// Errorf logs an error.
func (l *logger) Errorf(format string, v ...any) {
	l.to.Error("NATS server: " + fmt.Sprintf(format, v...))
}

// plaintext is the server's warning about a password that is no hash. Ours is none because
// the node's own connections log in with it.
const plaintext = "Plaintext passwords detected, use nkeys or bcrypt"

// Warnf logs a warning.
func (l *logger) Warnf(format string, v ...any) {
	if format == plaintext {
		return
	}
	l.to.Warn("NATS server: " + fmt.Sprintf(format, v...))
}

// Noticef, Debugf and Tracef say nothing.
func (l *logger) Noticef(string, ...any) {}

// Debugf says nothing.
func (l *logger) Debugf(string, ...any) {}

// Tracef says nothing.
func (l *logger) Tracef(string, ...any) {}
