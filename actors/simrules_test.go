package actors_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
)

// view is an agent as read from its log, with what the rules check.
type view struct {
	agent  messages.AgentID
	texts  bool // models, tools and hooks name what they answer, so that it can be checked
	store  *texts
	most   int // bytes of a blob that a model is given
	state  turn.State
	folded int // frames
	types  map[string]int
	last   eventlog.Entry
	wrong  []string

	inputs    map[string]int                  // number of terminal events of each accepted input
	turn      messages.TurnID                 // the open one
	processed map[string]messages.EventNumber // processed command ids
	// ever holds the events at which an id was processed, also before a delete.
	ever map[string][]messages.EventNumber
	// kept is the first frame that the log must still have.
	kept      int
	tombstone messages.EventNumber         // the newest one
	created   messages.EventNumber         // where the newest life began: behind the tombstone may be takeovers
	shown     map[messages.CallID]string   // what a model call must be given
	started   map[string]bool              // attempts of tool calls
	attempts  map[messages.CallID]int      // of the open turn's calls
	keys      map[messages.CallID]string   // of those calls
	dry       map[messages.CallID]bool     // those calls whose newest attempt began in a dry fork
	timers    map[string]messages.TimerSet // of the open turn
	later     map[string]messages.TimerSet // of the agent, outside of turns
	baseline  string                       // of a fork: its past as it began; empty: unknown
}

func newView(a messages.AgentID) *view {
	return &view{
		agent: a, types: make(map[string]int), inputs: make(map[string]int), processed: make(map[string]messages.EventNumber), ever: make(map[string][]messages.EventNumber),
		shown: make(map[messages.CallID]string), later: make(map[string]messages.TimerSet), started: make(map[string]bool),
	}
}

func (v *view) fail(n messages.EventNumber, format string, args ...any) {
	if len(v.wrong) < 5 {
		v.wrong = append(v.wrong, fmt.Sprintf("%s, event %d: %s", v.agent, n, fmt.Sprintf(format, args...)))
	}
}

// fold applies the rest of the agent's log to its view. Hold mu.
func (w *world) fold(a messages.AgentID) *view {
	v, entries := w.views[a], w.stage.Entries(a)
	if v.folded == 0 && len(entries) > 0 {
		w.inherit(v, entries[0].Frame)
	}
	v.foldAll(entries)
	w.wrong = append(w.wrong, v.wrong...)
	v.wrong = nil
	return v
}

func (v *view) foldAll(entries []eventlog.Entry) {
	for _, e := range entries[v.folded:] {
		v.add(e)
	}
}

func (v *view) add(e eventlog.Entry) {
	v.folded++
	v.frame(e)
	v.last = e
}

// frame checks the next frame against those before it.
func (v *view) frame(e eventlog.Entry) {
	f, err := messages.DecodeFrame(v.agent, e.Bytes)
	if err != nil {
		v.fail(v.state.Last+1, "the frame cannot be read: %v", err)
		return
	}
	n := f.First
	if before := v.last.Frame; before != nil {
		if f.First != before.Last()+1 || f.Prev != before.ID || f.PrevDigest != messages.DigestOf(v.last.Bytes) {
			v.fail(n, "the frame does not follow the one before it: number, previous id or digest differ")
		}
		v.fence(n, before.Epoch, f)
		if f.Time.Before(before.Time) {
			v.fail(n, "the frame is older than the one before it")
		}
	}
	v.ends(n, f)
	for i, ev := range f.Events {
		v.types[ev.EventType()]++
		v.event(n+messages.EventNumber(i), f.Time, ev)
	}
	v.state.Apply(f)
	v.begun(f)
	v.cleared(f)
	if id := f.Cause.ID; isCommand(f) {
		if at, done := v.processed[id]; done {
			v.fail(f.First, "command %s was applied twice, first at event %d", id, at)
		}
		at, _ := v.state.Processed(id)
		v.processed[id] = at
		v.ever[id] = append(v.ever[id], at)
	}
	v.requested(f)
	if got := summaryOf(&v.state); got != inUTC(e.Summary) {
		v.fail(n, "got a summary %+v in the headers, want %+v from the log", inUTC(e.Summary), got)
	}
	for id, ended := range v.inputs {
		if ended == 0 && !v.holds(id) {
			v.fail(n, "input %s is neither queued, in the open turn, nor ended", id)
		}
	}
}

// ends checks a tombstone against what was before it. All accepted inputs have ended, and
// their ids are forgotten. It is the only event of its frame, and nothing follows until the
// agent is created again.
func (v *view) ends(n messages.EventNumber, f *messages.Frame) {
	for _, ev := range f.Events {
		switch ev.(type) {
		case messages.AgentDeleted:
			if v.turn != "" || len(f.Events) > 1 {
				v.fail(n, "got a tombstone during turn %q in a frame of %d events, want it alone and between turns", v.turn, len(f.Events))
			}
			for id, ended := range v.inputs {
				if ended != 1 {
					v.fail(n, "input %s had %d terminal events when the agent was deleted, want 1", id, ended)
				}
			}
			if !isCommand(f) {
				v.fail(n, "the frame of the tombstone has no command as its cause: the same delete would apply twice")
			}
			v.tombstone, v.kept = n, v.folded-1
			v.later, v.inputs, v.processed = make(map[string]messages.TimerSet), make(map[string]int), make(map[string]messages.EventNumber)
		case messages.AgentActivated:
		case messages.AgentCreated:
			return
		default:
			if v.state.Life.Deleted != nil {
				v.fail(n, "got %s of a deleted agent", ev.EventType())
			}
		}
	}
}

// fence checks that the first frame of a new epoch begins with agent.activated.
func (v *view) fence(n messages.EventNumber, before messages.Epoch, f *messages.Frame) {
	activated, ok := f.Events[0].(messages.AgentActivated)
	switch {
	case f.Epoch < before:
		v.fail(n, "got epoch %d after %d: a deposed owner appended a frame", f.Epoch, before)
	case ok && (activated.Epoch != f.Epoch || activated.Previous != before):
		v.fail(n, "agent.activated after epoch %d under %d names epochs %d and %d", before, f.Epoch, activated.Previous, activated.Epoch)
	case f.Epoch > before && !ok:
		v.fail(n, "the first frame of epoch %d does not fence the agent", f.Epoch)
	}
}

// holds reports whether an input is queued or belongs to the open turn.
func (v *view) holds(id string) bool {
	if slices.Contains(v.state.TurnInputs(), id) {
		return true
	}
	return slices.ContainsFunc(v.state.Inputs.Queued, func(q projections.Input) bool { return q.ID == id })
}

// summaryOf returns the summary that headers must have for the state.
func summaryOf(s *turn.State) eventlog.Summary {
	sum := eventlog.Summary{Phase: messages.AgentPhase(s.Phase()), Open: s.Open(), Due: s.Due(), Waiting: len(s.Waiting())}
	if s.Turn != nil {
		sum.Turn = s.Turn.ID
	}
	if s.Ended != nil && s.Ended.Phase == projections.Failed {
		sum.Failed = s.Ended.Why()
	}
	return inUTC(sum)
}

// inUTC returns the summary with its time in UTC, so that summaries can be compared.
func inUTC(s eventlog.Summary) eventlog.Summary {
	if !s.Due.IsZero() {
		s.Due = time.Unix(0, s.Due.UnixNano()).UTC()
	}
	return s
}

// requested records what the model calls of a frame must be given.
func (v *view) requested(f *messages.Frame) {
	for _, ev := range f.Events {
		switch ev := ev.(type) {
		case messages.ModelRequested:
			v.shown[ev.Call] = strings.Join(brief(providers.Request{Items: v.shownItems()}), "\n")
			if len(ev.Rewritten) > 0 || ev.RewrittenBlob != nil {
				v.types["a rewritten request"]++
				v.shown[ev.Call] = aRewrite
			}
		case messages.CompactionRequested:
			v.shown[ev.Call] = aSummary
		}
	}
}

func (v *view) event(n messages.EventNumber, at time.Time, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.AgentCreated:
		v.created = n
	case messages.InputAccepted:
		if _, known := v.inputs[ev.Input]; known {
			v.fail(n, "got input %s accepted twice", ev.Input)
		}
		v.inputs[ev.Input] = 0
	case messages.TurnStarted:
		if v.turn != "" {
			v.fail(n, "got the start of turn %s while turn %s is open", ev.Turn, v.turn)
		}
		v.turn = ev.Turn
		v.attempts, v.keys, v.dry, v.timers = make(map[messages.CallID]int), make(map[messages.CallID]string), make(map[messages.CallID]bool), make(map[string]messages.TimerSet)
	case messages.TurnCompleted:
		v.ended(n, ev.Turn, ev.Inputs)
	case messages.TurnFailed:
		v.ended(n, ev.Turn, ev.Inputs)
	case messages.TurnAborted:
		v.ended(n, ev.Turn, ev.Inputs)
	case messages.InputCancelled:
		v.inputEnded(n, ev.Input)
	case messages.InputDropped:
		v.inputEnded(n, ev.Input)
	case messages.ForkSettled:
		v.settled(n, ev)
	case messages.HistoryCompacted:
		if ev.How == messages.CompactSummary && strings.TrimRight(ev.Text, " ") != "answer to "+string(ev.Call) {
			v.fail(n, "got summary %q, want the one of %s", ev.Text, ev.Call)
		}
	default:
		if strings.HasPrefix(ev.EventType(), "timer.") && messages.TurnOf(ev) == "" {
			v.schedule(n, at, ev)
			return
		}
		v.work(n, at, ev)
	}
}

// aSummary stands for what a model is given to summarize, which is not checked.
const aSummary = "the conversation so far"

// schedule checks an event of one of the agent's own timers against those before it.
func (v *view) schedule(n messages.EventNumber, at time.Time, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.TimerSet:
		v.later[ev.Timer] = ev
	case messages.TimerFired:
		if set, ok := v.later[ev.Timer]; !ok || at.Before(set.At) {
			v.fail(n, "timer %s fired at %v, want %v or later", ev.Timer, at, set.At)
		}
		delete(v.later, ev.Timer) // a cron schedule sets it again
	case messages.TimerCancelled:
		delete(v.later, ev.Timer)
	}
}

func (v *view) ended(n messages.EventNumber, t messages.TurnID, inputs []string) {
	if t != v.turn {
		v.fail(n, "got the end of turn %s, want turn %q", t, v.turn)
	}
	v.turn = ""
	for _, id := range inputs {
		v.inputEnded(n, id)
	}
}

func (v *view) inputEnded(n messages.EventNumber, id string) {
	if ended, known := v.inputs[id]; !known || ended > 0 {
		v.fail(n, "got the end of input %s after %d others, accepted: %v", id, ended, known)
	}
	v.inputs[id]++
}

// work checks an event of the open turn against those before it.
func (v *view) work(n messages.EventNumber, at time.Time, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.ModelCompleted:
		if t := v.state.Turn; t == nil || t.Model == nil || t.Model.ID != ev.Call {
			v.fail(n, "got a model answer that the turn does not wait for")
		} else if text := v.whole(n, ev).(messages.ModelCompleted).Items[0].Content.Text(); v.texts && strings.TrimRight(text, " ") != "answer to "+string(ev.Call) {
			v.fail(n, "got model answer %q, want the one to %s", text, ev.Call)
		}
	case messages.ToolStarted:
		if ev.Attempt != v.attempts[ev.Call]+1 || ev.Attempt > 1 && ev.OnUnknown == messages.Pause && ev.Reason != "decision" && !v.dry[ev.Call] {
			v.fail(n, "got attempt %d of a call with on_unknown %s after attempt %d, reason %q", ev.Attempt, ev.OnUnknown, v.attempts[ev.Call], ev.Reason)
		}
		if key, known := v.keys[ev.Call]; known && key != ev.Key {
			v.fail(n, "the key of %s changed from %s to %s", ev.Call, key, ev.Key)
		}
		v.attempts[ev.Call], v.keys[ev.Call] = ev.Attempt, ev.Key
		v.dry[ev.Call] = v.state.Forks.Dry()
		v.started[attemptOf(ev.Key, ev.Attempt)] = !v.dry[ev.Call]
	case messages.ToolCompleted:
		if v.dry[ev.Call] {
			v.replayed(n, ev)
			return
		}
		if want := outputOf(v.keys[ev.Call], v.attempts[ev.Call]); v.texts && ev.By != "decision" && strings.TrimRight(v.whole(n, ev).(messages.ToolCompleted).Output, " ") != want {
			v.fail(n, "got result %q, want %q", ev.Output, want)
		}
	case messages.HookDecided:
		if v.texts && ev.Decision != "failed" && !strings.HasPrefix(ev.Reason+" ", "at "+string(v.turn)+" ") {
			v.fail(n, "got hook decision %q in turn %s, want the turn in its reason", ev.Reason, v.turn)
		}
	case messages.TimerSet:
		v.timers[ev.Timer] = ev
	case messages.TimerFired:
		if set, ok := v.timers[ev.Timer]; !ok || at.Before(set.At) {
			v.fail(n, "timer %s fired at %v, want %v or later", ev.Timer, at, set.At)
		}
		delete(v.timers, ev.Timer)
	case messages.TimerCancelled:
		delete(v.timers, ev.Timer)
	}
}

// check checks the running jobs against the logs. Call it when nothing moves.
func (w *world) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.agents {
		v := w.fold(a)
		for _, j := range w.jobs {
			if j.agent == a && !j.afterEnd && j.ctx.Err() == nil && !j.host.dead.Load() {
				w.checkJob(j, v)
			}
		}
	}
}

// checkJob reports a job that should not run. The job must not be cancelled.
func (w *world) checkJob(j *job, v *view) {
	if v.folded == 0 {
		w.fail("%s: the %s of %s runs although the log is empty", j.agent, j.what, j.call)
		return
	}
	mine, owner := j.host.node.Epoch(), v.last.Frame.Epoch
	switch {
	case mine < owner:
		if j.host.marked(j.host.fenced, j.agent) {
			w.fail("%s: the %s of %s still runs at the owner of epoch %d, which was fenced by epoch %d", j.agent, j.what, j.call, mine, owner)
		}
	case !j.host.marked(j.host.unsure, j.agent) && !j.awaited(v):
		w.fail("%s: the %s of %s, attempt %d, still runs although its result is not needed", j.agent, j.what, j.call, j.attempt)
	}
}

func (j *job) awaited(v *view) bool {
	if j.what == "hook" { // the log has no event for the start of a hook
		return true
	}
	return slices.ContainsFunc(v.state.Effects(), func(e turn.Effect) bool {
		model := j.what == "model"
		return e.Call == j.call && model == (e.Do == turn.CallModel || e.Do == turn.Summarize) && (model || e.Attempt == j.attempt)
	})
}

// sent is a command that was sent to a node.
type sent struct {
	host   *host
	agent  messages.AgentID
	cmd    messages.Command
	answer *messages.Answer
	after  messages.EventNumber // the newest tombstone when it was sent
}

// ask sends a command to a node and checks its answer against the log.
func (w *world) ask(h *host, a messages.AgentID, c messages.Command) {
	s := &sent{host: h, agent: a, cmd: c}
	w.mu.Lock()
	s.after = w.fold(a).tombstone
	name := a.Key + "/" + messages.IDOf(c)
	w.commands[name] = append(w.commands[name], s)
	w.mu.Unlock()
	wait := h.node.Ask(a, c)
	w.inFlight.Go(func() { w.answered(s, wait()) })
}

// activate activates an agent, as the owner of a partition does.
func (w *world) activate(h *host, a messages.AgentID) {
	w.inFlight.Go(func() { h.node.Activate(a) })
}

func (w *world) answered(s *sent, answer messages.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.answer = &answer
	if answer.Err != nil {
		if strings.Contains(answer.Err.Message, "did not answer") && !s.host.dead.Load() {
			w.fail("%s: %s %s got no answer", s.agent, s.cmd.CommandType(), messages.IDOf(s.cmd))
		}
		return
	}
	v := w.fold(s.agent)
	at := v.ever[messages.IDOf(s.cmd)]
	switch {
	case len(at) == 0:
		w.fail("%s: %s %s got answer %+v, and the log has no event of it", s.agent, s.cmd.CommandType(), messages.IDOf(s.cmd), answer)
	case answer.N < s.after:
		w.fail("%s: %s %s got answer %+v, from before the delete at event %d", s.agent, s.cmd.CommandType(), messages.IDOf(s.cmd), answer, s.after)
	case !slices.Contains(at, answer.N):
		w.fail("%s: %s %s got answer %+v, want event %d", s.agent, s.cmd.CommandType(), messages.IDOf(s.cmd), answer, at)
	}
}

// verify checks all answers and logs at the end of a run.
func (w *world) verify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, list := range w.commands {
		w.verifyRefused(name, list)
	}
	for _, a := range w.agents {
		v := w.fold(a)
		for id, ended := range v.inputs {
			if ended != 1 {
				w.fail("%s: input %s has %d terminal events, want 1", a, id, ended)
			}
		}
		for _, f := range v.state.Forks.List {
			if f.Status == projections.ForkPending {
				w.fail("%s: fork %s has neither begun nor was it refused", a, f.Agent)
			}
		}
		if err := w.readAll(a, v); err != nil {
			w.fail("%s: %v", a, err)
		}
	}
}

// verifyRefused checks that a command that was refused permanently, each time that it was
// sent, left no event.
func (w *world) verifyRefused(name string, list []*sent) {
	for _, s := range list {
		if s.answer == nil || s.answer.Err == nil || s.answer.Err.Code == messages.Unavailable || s.answer.Err.Code == messages.Internal {
			return
		}
	}
	if at := w.views[list[0].agent].ever[messages.IDOf(list[0].cmd)]; len(at) > 0 {
		w.fail("%s was refused with %v, but the log has it at event %d", name, list[0].answer.Err, at)
	}
}

// readAll reads the agent's whole log, which checks its numbers, chain and checksums.
func (w *world) readAll(a messages.AgentID, v *view) error {
	frames := 0
	for _, err := range w.stage.Store().Read(context.Background(), a, eventlog.Range{}) {
		if err != nil {
			return err
		}
		frames++
	}
	if frames != v.folded-v.kept {
		return fmt.Errorf("the log has %d frames, want %d", frames, v.folded-v.kept)
	}
	return nil
}

// isCommand reports whether a command is the frame's cause.
func isCommand(f *messages.Frame) bool { return f.Cause.Endpoint != "" && f.Cause.ID != "" }
