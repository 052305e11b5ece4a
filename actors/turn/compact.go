package turn

import (
	"fmt"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// maxSummaries is how often a summary is tried before the history is cut without.
const maxSummaries = 3

// DefaultKeep is how many items a compaction keeps by default.
const DefaultKeep = 20

// worthwhile is which part of a request that is too large must go for a
// compaction: one that takes little away would come before each step.
const worthwhile = 8

// tooLarge returns what is to go before the turn's next model call, and why; a zero Cut where that
// is not too large. It is compacted once a step: what is too large after that is sent as it is.
func (d *decision) tooLarge(t *projections.TurnState) (cut projections.Cut, reason string) {
	def := d.env.Definition
	if def.Compact.AtTokens == 0 || t.Compacted || t.Reached != nil || d.s.Summary != nil {
		return cut, ""
	}
	size := d.requestSize()
	if size <= def.Compact.AtTokens*bytesPerToken || !d.affordable() {
		return cut, ""
	}
	if cut = d.cut(0); cut.Size*worthwhile < size {
		return projections.Cut{}, ""
	}
	return cut, fmt.Sprintf("the next model call would have about %d tokens (at_tokens: %d)", tokensOf(size), def.Compact.AtTokens)
}

// shrink compacts the history after a model call that was too long. It reports false where
// nothing is to go.
func (d *decision) shrink() bool {
	cut, keep := d.shorter()
	if cut.Upto == 0 || d.s.Summary != nil || !d.affordable() {
		return false
	}
	d.compact(cut, keep, "the model call was longer than the model takes")
	return true
}

// compact takes the older part of the history away for the turn's next model call, as the
// definition wants it.
func (d *decision) compact(cut projections.Cut, keep int, reason string) {
	t, def := d.s.Turn, d.env.Definition
	if def.Compact.How == messages.CompactWindow || def.Compact.AtTokens == 0 {
		d.window(cut, t.ID, reason)
		return
	}
	d.summarize(messages.CompactionRequested{Turn: t.ID, Keep: keep, Reason: reason}, cut)
}

// shorter returns what is to go from a request that was too long, and how many items are wanted
// to stay: as many as the definition says, or fewer, until an eighth of the history goes. Where
// the definition wants no compaction it is the older half of what can go, and nothing if the
// turn before was not refused, or more than two thirds of the history cannot go.
func (d *decision) shorter() (cut projections.Cut, keep int) {
	h := &d.s.History
	size := h.SizeShown(d.env.Definition.ShowAtMost)
	keep, least := d.keep(0), size/worthwhile
	if d.env.Definition.Compact.AtTokens == 0 {
		all := d.cut(1).Size
		if e := d.s.Ended; e == nil || e.Withheld == 0 || size > 3*all {
			return projections.Cut{}, 0
		}
		keep, least = h.Len()/2, all/2
	}
	for ; keep > 0; keep /= 2 {
		if cut = d.cut(keep); cut.Upto != 0 && cut.Size >= least {
			return cut, keep
		}
	}
	return projections.Cut{}, 0
}

// affordable reports whether the turn may make another model call, but for what the
// compaction is to save.
func (d *decision) affordable() bool {
	switch d.limited().Limit {
	case "", "max_tokens", "max_cost":
		return true
	}
	return false
}

// keep is how many items are to stay.
func (d *decision) keep(wanted int) int {
	switch {
	case wanted > 0:
		return wanted
	case d.env.Definition.Compact.Keep > 0:
		return d.env.Definition.Compact.Keep
	}
	return DefaultKeep
}

// cut is what can go if so many items are wanted to stay.
func (d *decision) cut(keep int) projections.Cut {
	return d.s.History.Cut(d.keep(keep), d.env.Definition.ShowAtMost)
}

// compactHistory compacts the history as a command wants it.
func (d *decision) compactHistory(c messages.Compact) error {
	how := c.How
	if how == "" {
		how = d.env.Definition.Compact.How
	}
	cut := d.cut(c.Keep)
	switch {
	case cut.Upto == 0:
		return d.noop(c, "nothing can be compacted: the history has %d items, and the newest %d of them and the inputs of the turn at hand stay", d.s.History.Len(), d.keep(c.Keep))
	case how == messages.CompactWindow:
		d.window(cut, "", c.Reason)
	case d.s.Summary != nil:
		return messages.Refuse(messages.Busy, "a summary of the history is being made (call %s): wait for it, or compact it with how window", d.s.Summary.Call)
	default:
		d.summarize(messages.CompactionRequested{Keep: d.keep(c.Keep), Reason: c.Reason}, cut)
	}
	return nil
}

// window replaces the older part of the history by a line.
func (d *decision) window(cut projections.Cut, turn messages.TurnID, reason string) {
	d.emit(messages.HistoryCompacted{
		Turn: turn, Upto: cut.Upto, Dropped: cut.Dropped, Kept: cut.Kept, How: messages.CompactWindow,
		Text:   fmt.Sprintf("Earlier parts of this conversation, %d items, are left out here.", d.s.History.Omitted()+cut.Dropped),
		Reason: reason,
	})
}

// windowReason returns why a window takes the place of a summary that was made for a reason.
func windowReason(why, reason string) string {
	if reason == "" {
		return why
	}
	return why + "; " + reason
}

// summarize intends an attempt at a summary. One that a limit does not allow becomes a window.
func (d *decision) summarize(s messages.CompactionRequested, cut projections.Cut) {
	def := d.env.Definition
	s.Model = def.Compact.Model
	if s.Model == "" {
		s.Model = def.Model
	}
	need := projections.Use{}
	if d.budgeted() {
		if need = d.expected(s.Model, cut.Summarized); d.tooMuch(need) {
			d.window(cut, s.Turn, windowReason("a limit does not allow a summary", s.Reason))
			return
		}
	}
	s.Call, s.Attempt = messages.CallID(fmt.Sprintf("s%d", d.number())), s.Attempt+1
	s.Upto, s.Digest, s.Tokens, s.Cost = cut.Upto, string(cut.Digest), need.Tokens, need.Cost
	d.emit(s)
}

// tooMuch reports whether a limit does not allow so much more.
func (d *decision) tooMuch(need projections.Use) bool {
	over := func(b budget) bool {
		b.limits = messages.Limits{MaxTokens: b.limits.MaxTokens, MaxCost: b.limits.MaxCost}
		return b.reached(need).Limit != ""
	}
	turn, agent := d.budgets()
	return over(agent) || d.s.Turn != nil && over(turn)
}

// requestSize is how many bytes the next model call is expected to have.
func (d *decision) requestSize() int {
	size := d.s.History.SizeShown(d.env.Definition.ShowAtMost) + d.env.Definition.Overhead
	if t := d.s.Turn; t != nil {
		for _, q := range d.s.Inputs.Steered {
			size += q.Size
		}
	}
	return size
}

func tokensOf(size int) int { return (size + bytesPerToken - 1) / bytesPerToken }

// summarized puts a summary in its place, unless the history is another one by now: then it is
// made again.
func (d *decision) summarized(c messages.CompactionRequested, o Summarized) {
	cost := d.env.Definition.Prices[c.Model].Cost(o.Usage)
	if d.s.History.DigestBefore(c.Upto) != messages.Digest(c.Digest) {
		d.summaryFailed(c, ModelErred{Kind: "changed", Message: "the history is not what the summary was made of any more", Usage: o.Usage, Unknown: true})
		d.summaryAgain(c, time.Time{})
		return
	}
	dropped, kept := d.s.History.Drops(c.Upto)
	ev := messages.HistoryCompacted{
		Turn: c.Turn, Upto: c.Upto, Dropped: dropped, Kept: kept, How: messages.CompactSummary, Text: o.Text,
		Call: c.Call, Model: c.Model, Usage: o.Usage, Cost: cost, Reason: c.Reason,
	}
	if o.Usage == (messages.Usage{}) { // the server does not say
		ev.Unknown, ev.Tokens, ev.Cost = true, c.Tokens, c.Cost
	}
	d.emit(ev)
}

func (d *decision) summaryErred(c messages.CompactionRequested, o ModelErred) {
	d.summaryFailed(c, o)
	if !o.Temporary {
		c.Attempt = maxSummaries
	}
	d.summaryAgain(c, d.env.Now.Add(retryDelay(c.Attempt, o.RetryAfter, d.env.Jitter)))
}

// summaryFailed records what came of an attempt, and what that has used.
func (d *decision) summaryFailed(c messages.CompactionRequested, o ModelErred) {
	ev := messages.CompactionFailed{
		Turn: c.Turn, Call: c.Call, Attempt: c.Attempt, Kind: o.Kind, Message: o.Message,
		Usage: o.Usage, Cost: d.env.Definition.Prices[c.Model].Cost(o.Usage),
	}
	if o.Unknown && o.Usage == (messages.Usage{}) {
		ev.Unknown, ev.Tokens, ev.Cost = true, c.Tokens, c.Cost
	}
	d.emit(ev)
}

// lostSummary records that a summary was lost with its process, and tries again.
func (d *decision) lostSummary() {
	c := *d.s.Summary
	d.summaryFailed(c, ModelErred{Kind: "restarted", Message: "its process was lost before the summary was recorded", Unknown: true})
	d.summaryAgain(c, time.Time{})
}

// dropSummary gives up the summary that the turn waits for; of no turn, any.
func (d *decision) dropSummary(turn messages.TurnID, why string) {
	if c := d.s.Summary; c != nil && (turn == "" || c.Turn == turn) {
		d.summaryFailed(*c, ModelErred{Kind: "interrupted", Message: why, Unknown: true})
	}
}

// summaryAgain tries again what has failed. After the last attempt what would
// have been summarized is left out.
func (d *decision) summaryAgain(c messages.CompactionRequested, notBefore time.Time) {
	switch cut := d.cut(c.Keep); {
	case cut.Upto == 0:
	case c.Attempt >= maxSummaries:
		d.window(cut, c.Turn, windowReason("no summary could be made", c.Reason))
	default:
		if c.NotBefore = nil; !notBefore.IsZero() {
			at := stored(notBefore)
			c.NotBefore = &at
		}
		d.summarize(c, cut)
	}
}
