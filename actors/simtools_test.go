package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
)

// config returns the configuration that all nodes of a run share.
func (w *world) config(r *rand.Rand) actors.Config {
	d := actors.Definition{
		Kind: "test", Model: "a/m", Instructions: "Be brief.", MaxSteps: 2 + r.IntN(5), MaxQueue: 1 + r.IntN(4),
		MaxAttempts: 1 + r.IntN(3), Parallel: 1 + r.IntN(3), PauseAtLimit: r.IntN(2) == 0,
	}
	if r.IntN(2) == 0 {
		d.Fallbacks = []string{"b/m"}
	}
	if r.IntN(3) == 0 {
		d.TurnLimits = messages.Limits{MaxTokens: 800 + r.IntN(2000), MaxDuration: int64(r.IntN(2) * 20000)}
	}
	if r.IntN(5) == 0 {
		d.AgentLimits = messages.Limits{MaxSteps: 5 + r.IntN(10)}
	}
	if r.IntN(6) == 0 {
		d.StopOn = []string{"add"}
	}
	if r.IntN(3) == 0 {
		d.Compact = actors.Compaction{AtTokens: 40 + r.IntN(200), Keep: 1 + r.IntN(4), How: []string{"", messages.CompactWindow}[r.IntN(2)]}
	}
	d.ShowAtMost = []int{0, 0, 3000}[r.IntN(3)]
	return actors.Config{
		Definitions: []actors.Definition{d}, IdleAfter: time.Duration(1+r.IntN(40)) * time.Second,
		SnapshotEvery: []int{-1, 1, 1, 1, 3, 10, 30}[r.IntN(7)], MaxAgents: r.IntN(3),
	}
}

// equip sets the node's models, tools and hooks.
func (h *host) equip(cfg *actors.Config) {
	cfg.Providers = providers.Set{"a": providers.Func(h.generate), "b": providers.Func(h.generate)}
	d := cfg.Definitions[0]
	d.Tools = h.tools()
	if r := h.w.dice("hooks"); r.IntN(2) == 0 {
		d.Hooks = []actors.Hook{h.hook()}
	}
	cfg.Definitions = []actors.Definition{d}
}

// amount is the argument of all tools.
type amount struct {
	N int `json:"n"`
}

func (h *host) tools() []tool.Tool {
	of := func(name string, onUnknown tool.OnUnknown) *tool.Typed[amount] {
		return tool.New(name, "does "+name, onUnknown, func(ctx context.Context, _ amount) (string, error) { return h.runTool(ctx, name) })
	}
	return []tool.Tool{
		of("add", tool.ReadOnly),
		of("pay", tool.Rerun).ApproveIf(func(a amount) bool { return a.N > 0 }),
		of("mail", tool.Pause).Timeout(30 * time.Second),
		of("wire", tool.Pause).ApproveRepeats(),
		of("refund", tool.Rerun).ApproveAlways().ApprovalTimeout(20 * time.Second),
		of("ship", tool.Reconcile).ReconcileWith(func(ctx context.Context, key string) (string, tool.Found, error) { return h.check(ctx, key) }),
	}
}

// attemptOf returns a unique name for one attempt of a call.
func attemptOf(key string, attempt int) string { return fmt.Sprintf("%s#%d", key, attempt) }

// outputOf returns the output of a tool, which is different for each attempt.
func outputOf(key string, attempt int) string { return "did " + attemptOf(key, attempt) }

// runTool runs a tool.
func (h *host) runTool(ctx context.Context, name string) (string, error) {
	c := tool.CallOf(ctx)
	this := attemptOf(c.Key, c.Attempt)
	j, err := h.begin(ctx, &job{agent: c.Agent, what: "tool", call: c.ID, attempt: c.Attempt}, this, func(v *view) bool { return v.started[this] })
	if err != nil {
		return "", err
	}
	defer j.end()
	r := h.w.dice(name, this)
	if err := j.delay(r); err != nil {
		return "", err
	}
	if h.w.faultless() {
		return outputOf(c.Key, c.Attempt), nil
	}
	switch r.IntN(12) {
	case 0:
		return "", fmt.Errorf("no %s today", name)
	case 1:
		panic("a tool that fails")
	case 2:
		return outputOf(c.Key, c.Attempt) + strings.Repeat(" ", r.IntN(20<<10)), nil
	}
	return outputOf(c.Key, c.Attempt), nil
}

// check reports the outcome of a call, from the ledger.
func (h *host) check(ctx context.Context, key string) (string, tool.Found, error) {
	c := tool.CallOf(ctx)
	this := attemptOf(c.Key, c.Attempt)
	j, err := h.begin(ctx, &job{agent: c.Agent, what: "check", call: c.ID, attempt: c.Attempt}, "check of "+this, func(v *view) bool { return v.started[this] })
	if err != nil {
		return "", tool.Unsure, err
	}
	defer j.end()
	r := h.w.dice("check", this)
	if err := j.delay(r); err != nil {
		return "", tool.Unsure, err
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	switch {
	case r.IntN(4) == 0:
		return "", tool.Unsure, nil
	case h.w.runs[attemptOf(key, c.Attempt)] > 0:
		return outputOf(key, c.Attempt) + strings.Repeat(" ", r.IntN(2)*r.IntN(20<<10)), tool.Done, nil
	}
	return "", tool.NotDone, nil
}

// generate answers every model call.
func (h *host) generate(ctx context.Context, req providers.Request, emit func(providers.Delta)) (providers.Response, error) {
	w := h.w
	this := fmt.Sprint("model call ", req.Call, " of ", req.Agent.Key)
	shows := strings.Join(brief(req), "\n")
	summary := req.Instructions == actors.SummaryInstructions
	if summary {
		shows = aSummary
	}
	j, err := h.begin(ctx, &job{agent: req.Agent, what: "model", call: req.Call}, this, func(v *view) bool {
		want, ok := v.shown[req.Call]
		if ok && want != shows && want != aRewrite {
			w.fail("%s: the model was given\n%s\nwant, from the log,\n%s", this, shows, want)
		}
		return ok
	})
	if err != nil {
		return providers.Response{}, err
	}
	defer j.end()
	h.sentAsRecorded(req)
	r := w.dice(this)
	if r.IntN(3) == 0 {
		emit(providers.Delta{Kind: providers.DeltaText, Text: "well"})
	}
	if err := j.delay(r); err != nil {
		return providers.Response{}, err
	}
	resp := providers.Response{Usage: messages.Usage{Input: 5 + r.IntN(50), Output: 1 + r.IntN(20)}}
	if w.faultless() {
		resp.Items = []messages.Item{answerTo(req)}
		return resp, nil
	}
	switch r.IntN(16) {
	case 0, 1:
		return resp, &providers.Error{Kind: providers.Overloaded, Temporary: true, RetryAfter: time.Duration(r.IntN(3)) * time.Second}
	case 2:
		return resp, &providers.Error{Kind: providers.BadRequest, Message: "never"}
	case 3:
		panic("a provider that fails")
	}
	if resp.Items = answers(req, r); summary {
		resp.Items = resp.Items[:1]
	}
	if r.IntN(8) == 0 {
		resp.Items[0].Content[0].Text += strings.Repeat(" ", r.IntN(20<<10))
	}
	return resp, nil
}

// answerTo returns a text that names the call it answers.
func answerTo(req providers.Request) messages.Item {
	return messages.Text(messages.RoleAssistant, "answer to "+string(req.Call))
}

// answers returns a text alone, or with up to four tool calls, whose names and ids may be
// missing, repeated or unknown.
func answers(req providers.Request, r *rand.Rand) []messages.Item {
	items := []messages.Item{answerTo(req)}
	if r.IntN(4) == 0 {
		return items
	}
	names := []string{"add", "pay", "pay", "mail", "mail", "wire", "wire", "refund", "ship", "ship", "nosuch"}
	for range 1 + r.IntN(4) {
		id := messages.CallID([]string{"", "c1", "c2", "c3"}[r.IntN(4)])
		arguments := fmt.Sprintf(`{"n":%d}`, r.IntN(3))
		if r.IntN(20) == 0 {
			arguments = "{oops"
		}
		items = append(items, messages.Item{Type: messages.ItemCall, CallID: id, Name: names[r.IntN(len(names))], Arguments: arguments})
	}
	return items
}

// runHook runs a hook at one point and returns its verdict.
func (h *host) runHook(ctx context.Context, in actors.HookInfo, point string, of ...any) actors.Verdict {
	name := fmt.Sprint("hook at ", point, " of ", in.Agent.Key, " ", in.Turn, " ", in.Step, of)
	afterEnd := slices.Contains(of, any("failed")) || slices.Contains(of, any("aborted"))
	j, err := h.begin(ctx, &job{agent: in.Agent, what: "hook", afterEnd: afterEnd}, name, func(*view) bool { return true })
	if err != nil {
		return actors.Verdict{}
	}
	defer j.end()
	r := h.w.dice(name)
	if j.delay(r) != nil || h.w.faultless() {
		return actors.Verdict{}
	}
	if r.IntN(30) == 0 {
		panic("a hook that fails")
	}
	do := []actors.Action{actors.Rewrite, actors.Skip, actors.Pause, actors.Finish, actors.Continue}[min(r.IntN(16), 4)]
	v := actors.Verdict{Do: do, Reason: "at " + string(in.Turn), Text: []string{"so it is", "", "", ""}[r.IntN(4)]}
	if point == "before_tool" {
		v.Arguments = json.RawMessage(`{"n":1}`)
	}
	return v
}

// hook returns a hook for every point that takes time and sometimes intervenes.
func (h *host) hook() actors.Hook {
	return actors.Hook{
		Name: "whim",
		TurnStart: func(ctx context.Context, in actors.HookInfo) (actors.Verdict, error) {
			return h.runHook(ctx, in, "turn_start"), nil
		},
		BeforeModel: func(ctx context.Context, in actors.HookInfo, req providers.Request) (actors.Verdict, error) {
			v := h.runHook(ctx, in, "before_model")
			if r := h.w.dice("rewrite", in.Agent, in.Turn, in.Step); v.Do == actors.Rewrite || v.Do == actors.Continue && v.Text != "" && r.IntN(2) == 0 {
				v.Do, v.Request = actors.Rewrite, rewrites(req, r)
			}
			return v, nil
		},
		BeforeTool: func(ctx context.Context, in actors.HookInfo, c actors.HookedCall) (actors.Verdict, error) {
			return h.runHook(ctx, in, "before_tool", c.ID), nil
		},
		TurnEnd: func(ctx context.Context, in actors.HookInfo, end actors.HookedEnd) (actors.Verdict, error) {
			return h.runHook(ctx, in, "turn_end", end.Status), nil
		},
	}
}
