// Package cli is the command line of Reprise, one file for each command.
//
// # Guarantees
//
//   - The exit code is 0 done, 1 refused or failed, 2 wrong usage, 3 the turn
//     waits for a person, 130 an ask was stopped by Ctrl-C; its turn continues.
//   - A failed write to standard output is an error.
//   - An error is one line on standard error, and what to do about it on a second.
//   - With -o json standard output holds JSON and nothing else.
//   - Nothing that users, models or tools wrote reaches a terminal raw.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
)

// The groups of commands in the help.
const (
	groupRun    = "run"
	groupTalk   = "talk"
	groupLook   = "look"
	groupChange = "change"
	groupDecide = "decide"
	groupCheck  = "check"
	groupKeep   = "keep"
)

// app is one run of the program.
type app struct {
	in       io.Reader
	out, err io.Writer
	// started is how the user called the program, for hints.
	started string
	// output is text or json.
	output  string
	verbose bool
	// utc has times in UTC and wide has tables whole, also on a terminal.
	utc, wide bool
	noPager   bool
	logging   logging
	// running reports whether the command line was understood.
	running bool
	// command is the name of the command, empty if none was found.
	command string
	remote  remoteFlags
	// variables are the flags that were read from their variables.
	variables []string
	// gone reports whether the server went away while the command waited.
	gone atomic.Bool
}

// Main runs the program with its arguments, the first of which is its name, and returns its exit
// code.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	written := &output{Writer: out}
	a := &app{in: in, out: written, err: errs, started: startedAs(args)}
	root := a.root()
	root.SetArgs(args[min(1, len(args)):])
	cmd, err := root.ExecuteContextC(callerTrace().Context(context.Background()))
	_, a.command, _ = strings.Cut(cmd.CommandPath(), " ")
	return a.report(written.judge(err))
}

// startedAs is what the user typed to start the program.
func startedAs(args []string) string {
	if len(args) == 0 || args[0] == "" {
		return "reprise"
	}
	if strings.Contains(filepath.ToSlash(args[0]), "/go-build") {
		return "go run ./cmd/reprise"
	}
	return args[0]
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "reprise",
		Short: "Run AI agents whose every step is stored in a NATS JetStream log",
		Long: `Run AI agents whose every step is stored in a NATS JetStream log.

The address of an agent is kind/key or tenant/kind/key, such as assistant/main. To begin, run
"reprise dev", then in another terminal: reprise ask assistant/main "What is 17 times 3?"`,
		SilenceErrors: true, SilenceUsage: true,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: a.prepare,
		Version:           versionText(),
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), allFlags, ownFlags, 1) + environmentHelp)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.PersistentFlags().StringVarP(&a.output, "output", "o", "text", "output `FORMAT`: text or json")
	root.PersistentFlags().BoolVar(&a.utc, "utc", false, "show times in UTC on a terminal (elsewhere they always are), and read times without a zone as UTC")
	root.PersistentFlags().BoolVar(&a.wide, "wide", false, "on a terminal, do not cut texts to its width, and show times instead of ages")
	root.PersistentFlags().BoolVar(&a.noPager, "no-pager", false, "do not show long output in $PAGER on a terminal")
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run a node:"},
		&cobra.Group{ID: groupTalk, Title: "Talk to an agent:"},
		&cobra.Group{ID: groupLook, Title: "See what happened:"},
		&cobra.Group{ID: groupChange, Title: "Change what an agent does:"},
		&cobra.Group{ID: groupDecide, Title: "Decide what waits for a person:"},
		&cobra.Group{ID: groupKeep, Title: "Keep copies:"},
		&cobra.Group{ID: groupCheck, Title: "Check and measure:"},
	)
	root.AddCommand(a.commands()...)
	completion(root)
	a.explained(root)
	a.completed(root)
	for _, cmd := range root.Commands() {
		if slices.Contains(lists, cmd.Name()) {
			a.watched(cmd)
		}
		if slices.Contains(lists, cmd.Name()) || slices.Contains(texts, cmd.Name()) {
			a.paged(cmd)
		}
	}
	return root
}

func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.dev(), a.serve(), a.drain(),
		a.ask(), a.chat(), a.send(),
		a.ls(), a.show(), a.tree(), a.events(), a.blob(), a.history(), a.state(), a.turns(), a.turn(), a.usage(), a.effects(), a.timers(), a.replay(), a.request(), a.why(), a.find(), a.traces(), a.dlq(),
		a.interrupt(), a.abort(), a.clear(), a.cancel(), a.compact(), a.resume(), a.setState(), a.delete(),
		a.fork(), a.useTools(), a.forks(), a.diff(),
		a.approvals(), a.approve(), a.deny(), a.decide(),
		a.backup(), a.restore(), a.store(),
		a.export(),
		a.imports(),
		a.verifies(),
		a.check(), a.schema(), a.doctor(), a.nodes(), a.partitions(), a.index(), a.bench(), a.permissions(), a.version(),
	}
}

func (a *app) json() bool { return a.output == "json" }

// output is standard output; failed is its first error, nil if there is none.
type output struct {
	io.Writer
	failed error
}

// Write writes to standard output.
func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if o.failed == nil {
		o.failed = err
	}
	return n, err
}

// judge returns err, or that something was not written where there is no other error.
func (o *output) judge(err error) error {
	if o.failed == nil || err != nil && !errors.Is(err, o.failed) {
		return err
	}
	return fail("the output is incomplete", "standard output cannot be written: %v", o.failed)
}

// printf writes to standard output; Main reports if that fails.
func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.out, format, args...) }

// note writes a remark to standard error, as a record if the log is JSON.
func (a *app) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if log := a.records(a.err); log != nil {
		log.Info(text)
		return
	}
	_, _ = fmt.Fprintln(a.err, a.dim(a.err, text))
}
