package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/actors/verify"
)

// verifying are the flags of verify.
type verifying struct {
	chosen
	candidate, from string
	live            liveFlags
}

func (a *app) verifies() *cobra.Command {
	var v verifying
	cmd := &cobra.Command{
		Use: "verify [AGENT...]", GroupID: groupCheck,
		Short: "Decide recorded events again and report the first that differs",
		Long: `Decide the recorded events of agents again, with the current code and definitions, and report the
first event of each agent that differs. Recorded commands, answers of models, results of tools
and decisions of hooks are used as they are: no model and no tool is called, and nothing is
written.

Without --candidate the node decides, with its definitions. With --candidate this program
decides, with the definitions of that file: you try a new version or a new file on agents that
are at work, without an effect on them. The MCP servers of the file are started for their lists
of tools.

The exit code is 1 if an agent differs or cannot be read. What cannot be decided from the log
alone is reported as not checked.

With --live-model the models of the file answer the recorded inputs again, and the answers and
calls are shown beside the recorded ones. A call gets the recorded result of the same tool with
the same arguments; a call without one is refused to the model, and listed. With --live-tools
tools are called: those that only read, or with --live-tools=all every tool, and their effects
happen again. Without --live-model the recorded calls are made again and their results compared.
Both run in this program, in memory, 16 agents at a time: no agent of the node changes. Calls of
models cost money: try a few agents first.

--grade runs a program for the recorded run and for the new one. It gets the run as JSON on
standard input and prints a score from -1e9 to 1e9: a number, or {"score":0.8,"reason":"..."}.
Spaces separate the program and its arguments, unless the whole value is the path of a program.
Write a script if an argument contains a space.

With --live-model a different answer is not a failure. The exit code is 1 if an agent cannot be
run to its end, such as when its model cannot be reached, and if it has no score or a score
below --min-score; with --live-tools alone also if a result differs.`,
		Example: `  reprise verify support/ticket-42
  reprise verify --kind support --candidate ./reprise.yaml
  reprise verify --from-file recorded.jsonl.gz --candidate ./reprise.yaml -o json
  reprise verify --kind support --candidate ./reprise.yaml --live-model --set model=openai/gpt-5.5 --grade ./grade.sh
  reprise verify support/ticket-42 --candidate ./reprise.yaml --live-tools`,
		RunE: func(cmd *cobra.Command, args []string) error {
			v.live.given(cmd.Flags())
			if err := cmp.Or(ofAll(cmd, args, []string{"tenant"}, nil), v.check(args, cmd.Flags().Changed("tenant"))); err != nil {
				return err
			}
			if v.live.on() {
				return a.runLive(cmd.Context(), v)
			}
			return a.runVerify(cmd.Context(), v)
		},
	}
	f := cmd.Flags()
	f.StringVar(&v.candidate, "candidate", "", "`FILE` with the definitions to decide with, such as ./reprise.yaml")
	f.StringVar(&v.from, "from-file", "", "exported `FILE` to verify, instead of agents of a node")
	v.chosen.flags(cmd)
	v.live.flags(f)
	return waitsFor(a.connects(cmd, 0), "all of it")
}

// check reads the agents that args name and refuses flags that make no sense together. tenant reports
// that --tenant is given.
func (v *verifying) check(args []string, tenant bool) error {
	if err := v.chosen.check(args, "name agents, or all of a kind by --kind, or all of a tenant by --all, or a file by --from-file: one of the four", v.from != ""); err != nil {
		return err
	}
	switch {
	case v.from != "" && tenant:
		return usage("--tenant: leave it out: the agents are those of the file")
	case v.from != "" && v.candidate == "":
		return usage("--from-file: no node decides about a file; name the definitions with --candidate, such as ./reprise.yaml")
	}
	return v.live.check(v.candidate)
}

func (a *app) runVerify(ctx context.Context, v verifying) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	run := &verifyRun{app: a, line: a.progress(), counts: make(map[verify.Outcome]int)}
	defer run.line.end()
	if v.candidate != "" {
		with, end, err := a.candidate(ctx, v.candidate)
		if err != nil {
			return err
		}
		defer end()
		run.with = with
	}
	err := eachChosen(ctx, a, &v.chosen, v.from, verifyAtOnce, run)
	run.line.end()
	if err != nil {
		return err
	}
	return run.sum()
}

// sum prints how many agents have which result, and fails unless all are equal.
func (r *verifyRun) sum() error {
	equal, differ, unreadable := r.counts[verify.Equal], r.counts[verify.Differs], r.counts[verify.Unreadable]
	total := summed(r.counts)
	if total == 0 {
		return fail("`"+r.started+" ls` lists the agents", "there are no such agents: nothing was verified")
	}
	if total > 1 && !r.json() {
		r.printf("%d agents: %d equal, %d differ, %d cannot be read\n", total, equal, differ, unreadable)
	}
	if equal < total {
		return silent(exitFailed)
	}
	return nil
}
