package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog/backup"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// The exit codes.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitWaits   = 3
	exitStopped = 130 // as shells have it for a program that Ctrl-C ended
)

// failure is an error with an exit code and with what to do about it.
type failure struct {
	code     int
	what, do string
	err      error
}

// Error is what went wrong.
func (f *failure) Error() string { return f.what }

// Unwrap returns the cause, if there is one.
func (f *failure) Unwrap() error { return f.err }

// usage is a command line that makes no sense.
func usage(format string, args ...any) error {
	return &failure{code: exitUsage, what: fmt.Sprintf(format, args...)}
}

// fail is an error with what to do about it.
func fail(do, format string, args ...any) error {
	return &failure{code: exitFailed, what: fmt.Sprintf(format, args...), do: do}
}

// stopped is an error of a command that Ctrl-C or SIGTERM ended, with what to do about it.
func stopped(do, format string, args ...any) error {
	return &failure{code: exitStopped, what: fmt.Sprintf(format, args...), do: do}
}

// whenBack is what to do about a server that has gone.
const whenBack = "try again when it is back; what was stored is not lost"

// silent ends the program with a code; everything is said already.
func silent(code int) error { return &failure{code: code} }

// report writes an error to standard error and returns the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return 0
	}
	f := a.failure(err)
	a.cause(f)
	if log := a.records(a.err); log != nil && f.what != "" {
		log.Error(f.what, "do", f.do)
		return f.code
	}
	if f.what != "" {
		for i, line := range strings.Split(f.what, "\n") {
			prefix := "reprise: "
			if i > 0 {
				prefix = strings.Repeat(" ", len(prefix))
			}
			_, _ = fmt.Fprintln(a.err, a.red(a.err, prefix)+projections.Printable(line, 2*messages.MaxMessage))
		}
	}
	if f.do != "" {
		_, _ = fmt.Fprintln(a.err, strings.Repeat(" ", len("reprise: "))+projections.Printable(f.do, 0))
	}
	return f.code
}

// help returns where usage is explained: of the command, if one was found.
func (a *app) help() string {
	if a.command == "" {
		return "`" + a.started + " --help` shows the commands"
	}
	return "`" + a.started + " " + a.command + " --help` shows what it takes"
}

// failure finds the exit code of an error and what to do about it.
func (a *app) failure(err error) *failure {
	var f *failure
	var refused *messages.Error
	switch {
	case errors.As(err, &f):
		return f
	case !a.running: // cobra's own errors
		return &failure{code: exitUsage, what: err.Error(), do: a.help()}
	case errors.Is(err, backup.ErrLost):
		return &failure{code: exitFailed, what: err.Error(), do: whenBack, err: err}
	case errors.Is(err, context.Canceled) && a.gone.Load():
		return &failure{code: exitFailed, what: client.ErrLost.Error(), do: whenBack, err: err}
	case errors.As(err, &refused):
		return &failure{code: exitFailed, what: err.Error(), do: a.advice(refused), err: err}
	case errors.Is(err, client.ErrLost):
		return &failure{code: exitFailed, what: client.ErrLost.Error(), do: whenBack, err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{code: exitFailed, what: "there was no answer within --timeout", do: "raise --timeout, or check with `" + a.started + " doctor` whether a node is there", err: err}
	case errors.Is(err, context.Canceled):
		return &failure{code: exitFailed, what: "interrupted", err: err}
	}
	return &failure{code: exitFailed, what: err.Error(), err: err}
}

// advice is what to do about a refusal whose message does not say it.
func (a *app) advice(refused *messages.Error) string {
	if strings.Contains(refused.Message, "waiting for a decision") {
		return "`" + a.started + " effects --outcome unknown` lists the calls that are"
	}
	switch refused.Code {
	case messages.NotFound:
		if strings.Contains(refused.Message, "does not exist") {
			return "`" + a.started + " ls` lists the agents"
		}
		if of, _, found := strings.Cut(strings.TrimPrefix(refused.Message, "agent "), " has no turn "); found {
			return "`" + a.started + " turns " + of + "` lists its turns"
		}
	case messages.Busy:
		return "leave out --policy reject to wait in its queue, or `" + a.started + " interrupt` it"
	case messages.QueueFull:
		return "try again when fewer inputs wait; `" + a.started + " show` counts them"
	case messages.Expired:
		return "give a later --deadline, or none"
	}
	return ""
}
