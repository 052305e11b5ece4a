package cli

import (
	"context"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/rerun"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// liveFlags are the flags of verify with which agents run again.
type liveFlags struct {
	model    bool
	tools    string
	set      []string
	grade    string
	minScore float64
	// bounded reports that minScore is given.
	bounded bool
}

func (l *liveFlags) flags(f *pflag.FlagSet) {
	f.BoolVar(&l.model, "live-model", false, "have the models of the file answer the recorded inputs again")
	f.StringVar(&l.tools, "live-tools", "", "call tools again: those that only read, or with =all every one")
	f.Lookup("live-tools").NoOptDefVal = string(rerun.ReadOnly)
	f.StringArrayVar(&l.set, "set", nil, "with --live-model, `NAME=VALUE`, may be given again: model=PROVIDER/MODEL, instructions=TEXT or @FILE, tools=NAME,NAME")
	f.StringVar(&l.grade, "grade", "", "with --live-model, `PROGRAM` and its arguments that gives a run a score")
	f.Float64Var(&l.minScore, "min-score", 0, "with --grade, the least score that the new run of an agent may have")
}

// on reports whether agents run again.
func (l *liveFlags) on() bool { return l.model || l.tools != "" }

// check refuses flags that make no sense together.
func (l *liveFlags) check(candidate string) error {
	switch {
	case l.on() && candidate == "":
		return usage("--live-model, --live-tools: the models and tools are those of a file; name it with --candidate, such as ./reprise.yaml")
	case !l.model && (len(l.set) > 0 || l.grade != ""):
		return usage("--set, --grade: they are for runs by a model; give --live-model, too")
	case l.bounded && l.grade == "":
		return usage("--min-score: no program gives a score; name one with --grade")
	case l.tools != "" && l.tools != string(rerun.ReadOnly) && l.tools != string(rerun.AllTools):
		return usage("--live-tools=%s: write --live-tools for those that only read, or --live-tools=all", l.tools)
	}
	return nil
}

// options returns what the flags choose.
func (l *liveFlags) options() (o rerun.Options, err error) {
	o.Model, o.Tools = l.model, rerun.Tools(l.tools)
	if o.Set, err = forkChanges(l.set); err != nil || l.grade == "" {
		return o, err
	}
	c := toolbox.CommandConfig{Name: "grade", Command: strings.Fields(l.grade), Env: inherited(), OnUnknown: tool.ReadOnly}
	if _, err := c.Program(); err != nil {
		return o, usage("--grade: %v", err)
	}
	t, err := toolbox.Command(c)
	if err != nil {
		return o, usage("--grade: %v", err)
	}
	o.Grade = rerun.ToolGrader(t)
	return o, nil
}

// inherited names the variables of the environment: a grader may ask a model, and needs its key.
func inherited() (names []string) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// liveRun runs agents again.
type liveRun struct {
	*app
	liveFlags
	options rerun.Options
	cfg     actors.Config
	line    *progress
	done    int
	// failed counts agents for which the exit code is 1.
	failed int
	scores [][]string
	// recorded and now are the sums of scores.
	recorded, now float64
}

func (a *app) runLive(ctx context.Context, args []string, v verifying) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	options, err := v.live.options()
	if err != nil {
		return err
	}
	cfg, end, err := a.rehearsal(ctx, v.candidate, options.Set.Model)
	if err != nil {
		return err
	}
	defer end()
	run := &liveRun{app: a, liveFlags: v.live, options: options, cfg: cfg, line: a.progress()}
	defer run.line.end()
	run.line.show("verify: running")
	if err := run.agents(ctx, args, v); err != nil {
		return err
	}
	run.line.end()
	return run.sum()
}

// agents runs those that the flags choose.
func (r *liveRun) agents(ctx context.Context, args []string, v verifying) error {
	if v.from != "" {
		f, err := os.Open(v.from)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		return inOrder(ctx, exportedAgents(f), r.run, r.show)
	}
	c, ctx, done, err := r.client(ctx)
	if err != nil {
		return err
	}
	defer done()
	return inOrder(ctx, v.agents(ctx, c, args), func(ctx context.Context, agent messages.AgentID) (rerun.Result, error) {
		rec, err := recordedAgent(ctx, c, agent)
		if err != nil {
			return rerun.Result{}, err
		}
		return r.run(ctx, rec)
	}, r.show)
}

func (r *liveRun) run(ctx context.Context, rec rerun.Recorded) (rerun.Result, error) {
	return rerun.Run(ctx, r.cfg, rec, r.options)
}

// recordedAgent reads an agent of a node, with its payloads.
func recordedAgent(ctx context.Context, c *client.Client, agent messages.AgentID) (rerun.Recorded, error) {
	from := &exportSource{c: c, agent: agent, each: func(messages.EventNumber) {}}
	if _, err := from.newest(ctx); err != nil {
		return rerun.Recorded{}, err
	}
	g := newGathered(export.Head{Agent: agent.Full()})
	_, err := export.Copy(ctx, from, &g, export.Options{Blobs: true})
	return rerun.Recorded{Agent: agent, Frames: g.frames}, err
}

// exportedAgents yields the agents of a file, with their payloads.
func exportedAgents(from io.Reader) iter.Seq2[rerun.Recorded, error] {
	return func(yield func(rerun.Recorded, error) bool) {
		for agent, err := range export.Agents(from) {
			var rec rerun.Recorded
			if err == nil {
				rec, err = rerun.Exported(agent)
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// show prints a result and counts it.
func (r *liveRun) show(v rerun.Result) error {
	r.done++
	if r.fails(v) {
		r.failed++
	}
	if g := v.Grades; g != nil && g.Now != nil {
		r.recorded, r.now = r.recorded+g.Recorded.Score, r.now+g.Now.Score
		r.scores = append(r.scores, scoreRow(v.Agent.String(), g.Recorded.Score, g.Now.Score))
	}
	if r.json() {
		return r.object(v)
	}
	r.line.end()
	r.printf("%s", v.Text())
	r.line.show("verify: %d agents done", r.done)
	return nil
}

// fails reports whether the exit code is 1 for a result.
func (r *liveRun) fails(v rerun.Result) bool {
	switch {
	case v.Result == rerun.Failed || v.Result == rerun.Unreadable:
		return true
	case v.Result == rerun.Differs && !r.model:
		return true
	case v.Grades == nil:
		return false
	}
	return v.Grades.Now == nil || r.bounded && v.Grades.Now.Score < r.minScore
}

// sum prints the scores, and fails if an agent does.
func (r *liveRun) sum() error {
	if r.done == 0 {
		return fail("`"+r.started+" ls` lists the agents", "there are no such agents: nothing was run")
	}
	if n := float64(len(r.scores)); n > 0 && !r.json() {
		rows := append([][]string{{"AGENT", "RECORDED", "NOW", "CHANGE"}}, r.scores...)
		r.printf("\n")
		r.columns(append(rows, scoreRow("mean", r.recorded/n, r.now/n)))
	}
	if r.failed > 0 {
		return silent(exitFailed)
	}
	return nil
}

func scoreRow(name string, recorded, now float64) []string {
	text := func(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }
	change := text(now - recorded)
	if now > recorded {
		change = "+" + change
	}
	return []string{name, text(recorded), text(now), change}
}
