package cli

import (
	"cmp"
	"context"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"
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
	// called, graded and bounded report that tools, grade and minScore are given.
	called, graded, bounded bool
}

func (l *liveFlags) flags(f *pflag.FlagSet) {
	f.BoolVar(&l.model, "live-model", false, "let the models of the file answer the recorded inputs again")
	f.StringVar(&l.tools, "live-tools", "", "call tools again, those of this `MODE`: read-only (if none is given) or all")
	f.Lookup("live-tools").NoOptDefVal = string(rerun.ReadOnly)
	f.StringArrayVar(&l.set, "set", nil, "with --live-model, "+setUsage)
	f.StringVar(&l.grade, "grade", "", "with --live-model, score each run with this `PROGRAM` and its arguments")
	f.Float64Var(&l.minScore, "min-score", 0, "with --grade, the lowest `SCORE` that the new run of an agent may have")
}

// given notes which of the flags are given.
func (l *liveFlags) given(f *pflag.FlagSet) {
	l.called, l.graded, l.bounded = f.Changed("live-tools"), f.Changed("grade"), f.Changed("min-score")
}

// on reports whether agents run again.
func (l *liveFlags) on() bool { return l.model || l.called }

// check refuses flags that make no sense together.
func (l *liveFlags) check(candidate string) error {
	switch {
	case l.on() && candidate == "":
		return usage("--live-model, --live-tools: the models and tools are those of a file; name it with --candidate, such as ./reprise.yaml")
	case !l.model && (len(l.set) > 0 || l.graded):
		return usage("--set, --grade: they are for runs by a model; give --live-model, too")
	case l.graded && strings.TrimSpace(l.grade) == "":
		return usage("--grade %q: it names no program; name one, or leave the flag out", l.grade)
	case l.bounded && !l.graded:
		return usage("--min-score: no program gives a score; name one with --grade")
	case l.bounded && !(math.Abs(l.minScore) <= rerun.MaxScore): // nor NaN
		return usage("--min-score %v: scores are numbers from %g to %g", l.minScore, -rerun.MaxScore, rerun.MaxScore)
	case l.called && l.tools != string(rerun.ReadOnly) && l.tools != string(rerun.AllTools):
		return usage("--live-tools=%s: write --live-tools for those that only read, or --live-tools=all", l.tools)
	}
	return nil
}

// options returns what the flags choose.
func (l *liveFlags) options() (o rerun.Options, err error) {
	o.Model, o.Tools = l.model, rerun.Tools(l.tools)
	if o.Set, err = forkChanges(l.set); err != nil || !l.graded {
		return o, err
	}
	c := toolbox.CommandConfig{Name: "grade", Command: []string{l.grade}, Env: inherited(), OnUnknown: tool.ReadOnly}
	if _, whole := c.Program(); whole != nil { // not a path that has spaces
		c.Command = strings.Fields(l.grade)
	}
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

// liveAtOnce is how many agents run at the same time: most of the time they wait for their models.
const liveAtOnce = 16

// liveRun runs agents again.
type liveRun struct {
	*app
	liveFlags
	options rerun.Options
	cfg     actors.Config
	line    *progress
	total   int // 0: it is not known
	counts  map[rerun.Outcome]int
	used    rerun.Usages
	// failed counts agents for which the exit code is 1, and low those of them with a score under the least.
	failed, low int
	scores      [][]string
	// recorded and now are the sums of scores.
	recorded, now float64
}

func (a *app) runLive(ctx context.Context, v verifying) error {
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
	run := &liveRun{app: a, liveFlags: v.live, options: options, cfg: cfg, line: a.progress(), counts: make(map[rerun.Outcome]int)}
	defer run.line.end()
	run.line.show("verify: running")
	err = eachChosen(ctx, a, &v.chosen, v.from, liveAtOnce, run)
	run.line.end()
	run.sum()
	return cmp.Or(err, run.verdict())
}

func (r *liveRun) begin(agents int) { r.total = agents }

// stored runs an agent of a node again.
func (r *liveRun) stored(ctx context.Context, c *client.Client, agent messages.AgentID) (rerun.Result, error) {
	rec, err := recordedAgent(ctx, c, agent)
	if err != nil {
		return rerun.Result{}, err
	}
	return rerun.Run(ctx, r.cfg, rec, r.options)
}

// exported runs an agent of a file again.
func (r *liveRun) exported(ctx context.Context, agent *export.Agent) (rerun.Result, error) {
	rec, err := rerun.Exported(agent)
	if err != nil {
		return rerun.Result{}, err
	}
	return rerun.Run(ctx, r.cfg, rec, r.options)
}

// recordedAgent reads an agent of a node, with its payloads. What is not there, or damaged, is no error:
// other agents can be run.
func recordedAgent(ctx context.Context, c *client.Client, agent messages.AgentID) (rec rerun.Recorded, err error) {
	rec.Agent = agent
	g := newGathered(export.Head{Agent: agent.Full()})
	g.complete = true
	from := &exportSource{c: c, agent: agent, each: func(messages.EventNumber) {}}
	if _, err = from.newest(ctx); err == nil {
		_, err = export.Copy(ctx, from, &g, export.Options{Blobs: true})
	}
	rec.Frames = g.frames
	if why := new(messages.Error); errors.As(err, &why) && (why.Code == messages.NotFound || why.Code == messages.Damaged) {
		rec.Incomplete, err = why.Message, nil
	}
	return rec, err
}

// show prints a result and counts it.
func (r *liveRun) show(v rerun.Result) error {
	r.counts[v.Result]++
	if r.fails(v) {
		r.failed++
	}
	if v.Used != nil {
		r.used = r.used.Plus(*v.Used)
	}
	if g := v.Grades; g != nil && g.Now != nil {
		r.recorded, r.now = r.recorded+g.Recorded.Score, r.now+g.Now.Score
		r.scores = append(r.scores, scoreRow(v.Agent.String(), g.Recorded.Score, g.Now.Score))
		if r.under(g.Now) {
			r.low++
		}
	}
	if r.json() {
		return r.object(v)
	}
	r.line.end()
	r.printf("%s", v.Text())
	r.line.show("verify: %s", doneOf(summed(r.counts), r.total))
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
	return v.Grades.Now == nil || r.under(v.Grades.Now)
}

// under reports whether a score is under the least.
func (r *liveRun) under(s *rerun.Score) bool { return r.bounded && s.Score < r.minScore }

// sum prints how many agents have which result, what they used, and the scores.
func (r *liveRun) sum() {
	if r.json() {
		return
	}
	if n := summed(r.counts); n > 1 {
		r.printf("%d agents: %d same, %d differ, %d failed, %d cannot be run again\n", n, r.counts[rerun.Same], r.counts[rerun.Differs], r.counts[rerun.Failed], r.counts[rerun.Unreadable])
		if r.model {
			r.printf("  used: %s\n", r.used.Text())
		}
	}
	if n := float64(len(r.scores)); n > 0 {
		rows := append([][]string{{"AGENT", "RECORDED", "NOW", "CHANGE"}}, r.scores...)
		r.printf("\n")
		r.columns(append(rows, scoreRow("mean", r.recorded/n, r.now/n)))
	}
}

// verdict fails if an agent does, or none was run.
func (r *liveRun) verdict() error {
	switch {
	case summed(r.counts) == 0:
		return fail("`"+r.started+" ls` lists the agents", "there are no such agents: nothing was run")
	case r.low > 0:
		return fail("", "%s under --min-score %v", english.Plural(r.low, "score", ""), r.minScore)
	case r.failed > 0:
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
