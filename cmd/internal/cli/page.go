package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// lists are the commands whose output --watch prints again; texts are the others whose
// output may be longer than a terminal.
var (
	lists = []string{"approvals", "effects", "find", "forks", "ls", "nodes", "partitions", "show", "timers", "tree", "turns", "usage"}
	texts = []string{"diff", "events", "history", "request", "state", "traces", "turn", "why"}
)

// paged has cmd show long output by a pager, as git does.
func (a *app) paged(cmd *cobra.Command) {
	once := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.inPager(cmd, func() error { return once(cmd, args) })
	}
}

// inPager shows what run writes by a pager where its output may be longer than a terminal.
func (a *app) inPager(cmd *cobra.Command, run func() error) error {
	goesOn := slices.ContainsFunc([]string{"follow", "watch"}, cmd.Flags().Changed)
	if a.noPager || goesOn || a.json() || dumb() || !isTerminal(a.out) || !isTerminal(a.in) {
		return run()
	}
	return a.page(cmd, run)
}

// page shows what run writes by $PAGER, or by less. Without either it is written as it is.
func (a *app) page(cmd *cobra.Command, run func() error) error {
	chosen, given := os.LookupEnv("PAGER")
	if !given {
		chosen = "less"
	}
	words := strings.Fields(chosen)
	if len(words) == 0 || words[0] == "cat" {
		return run()
	}
	pager := exec.Command(words[0], words[1:]...)
	pager.Stdout, pager.Stderr, pager.Env = terminalOf(a.out), a.err, os.Environ()
	if os.Getenv("LESS") == "" { // no more than the text if that fits on the screen, and with its colours
		pager.Env = append(pager.Env, "LESS=FRX")
	}
	text, err := pager.StdinPipe()
	if err != nil || pager.Start() != nil {
		return run()
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	ctx, left := context.WithCancel(ctx)
	defer left()
	cmd.SetContext(ctx)
	out, errs := a.out, a.err
	shown := &screen{untilClosed{text, left}, terminalOf(out)}
	if a.out = shown; isTerminal(errs) {
		a.err = shown
	}
	err = run()
	a.out, a.err = out, errs
	_ = text.Close()
	_ = pager.Wait() // what it ends with means nothing to the command
	if ctx.Err() != nil {
		return nil // the person left the pager and wants no more
	}
	return err
}

// untilClosed is the input of a pager; closed is called when that takes no more.
type untilClosed struct {
	io.Writer
	closed func()
}

// Write writes to the pager.
func (u untilClosed) Write(b []byte) (int, error) {
	n, err := u.Writer.Write(b)
	if err != nil {
		u.closed()
	}
	return n, err
}

// watchEvery is how often --watch prints a list.
const watchEvery = 2 * time.Second

// watched adds to cmd the flag --watch.
func (a *app) watched(cmd *cobra.Command) {
	var on bool
	cmd.Flags().BoolVarP(&on, "watch", "w", false, fmt.Sprintf("on a terminal, print the list again every %v until Ctrl-C", watchEvery))
	once := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !on {
			return once(cmd, args)
		}
		if a.json() || !isTerminal(a.out) {
			return usage("--watch is for text on a terminal: programs can read `%s events AGENT --follow -o json`", a.started)
		}
		return a.watch(cmd, func() error { return once(cmd, args) })
	}
}

// watch fills the screen with what run writes until Ctrl-C. When run has worked once, an error
// is shown in the place of its output: a node may come back.
func (a *app) watch(cmd *cobra.Command, run func() error) error {
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	cmd.SetContext(ctx)
	out, errs, wipe := a.out, a.err, "\x1b[H\x1b[2J"
	if dumb() {
		wipe = "\n"
	}
	worked := false
	err := poll(ctx, watchEvery, func() (bool, error) {
		var text bytes.Buffer
		shown := &screen{&text, terminalOf(out)}
		a.out, a.err = shown, shown
		a.gone.Store(false)
		err := run()
		if err != nil && worked && ctx.Err() == nil {
			text.Reset()
			a.report(err)
			err = nil
		}
		a.out, a.err = out, errs
		if err == nil {
			worked = true
			_, height := terminalSize(out)
			a.printf("%s%s", wipe, firstLines(text.String(), height-1))
		}
		return false, err
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// firstLines is at most n lines of text, the last of which says if there are more; n below
// 1: all.
func firstLines(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	if more := len(lines) - n; n > 0 && more > 1 {
		return strings.Join(lines[:n-1], "") + fmt.Sprintf("… and %d more lines\n", more)
	}
	return text
}
