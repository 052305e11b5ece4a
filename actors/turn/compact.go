package turn

import (
	"cmp"
	"fmt"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// maxSummaries is how often a summary is tried before a window takes its place.
const maxSummaries = 3

// DefaultKeep is how many items a compaction keeps by default.
const DefaultKeep = 20

// worthwhile is which part of a request that is too large a compaction must take away, as a
// divisor: one that takes little away would come before each step.
const worthwhile = 8

// tooLarge returns what to cut before the turn's next model call, and why; a zero Cut if its
// request is not too large. It is compacted once a step: what is too large after that is sent as it
// is.
func (d *decision) tooLarge(t *projections.TurnState) (cut projections.Cut, reason string) {
	def := d.env.Definition
	if def.Compact.AtTokens == 0 || t.Compacted || t.Exceeded != nil || d.s.Summary != nil {
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

// shrink compacts the history after a model call that was too long. It reports false if there is
// nothing to cut.
func (d *decision) shrink() bool {
	cut, keep := d.shorter()
	if cut.Upto == 0 || d.s.Summary != nil || !d.affordable() {
		return false
	}
	d.compact(cut, keep, "the model call was longer than the model takes")
	return true
}

// compact cuts the older part of the history for the turn's next model call, as the definition
// requires.
func (d *decision) compact(cut projections.Cut, keep int, reason string) {
	t, def := d.s.Turn, d.env.Definition
	if def.Compact.How == messages.CompactWindow || def.Compact.AtTokens == 0 {
		d.window(cut, t.ID, reason)
		return
	}
	d.summarize(messages.CompactionRequested{Turn: t.ID, Keep: keep, Reason: reason}, cut)
}

// shorter returns what to cut from a request that was too long, and how many items to keep: as
// many as the definition sets, or fewer, until the cut is an eighth of the history. If the
// definition has no compaction it is the older half of what can be cut, and nothing if the turn
// before was not refused, or more than two thirds of the history must stay.
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

// affordable reports whether the turn may make another model call, apart from the limits that a
// compaction may help with.
func (d *decision) affordable() bool {
	switch d.limited().Limit {
	case "", messages.LimitTokens, messages.LimitCost:
		return true
	}
	return false
}

// keep returns how many items to keep; 0 wanted is the definition's number, or the default.
func (d *decision) keep(wanted int) int {
	return cmp.Or(max(wanted, 0), max(d.env.Definition.Compact.Keep, 0), DefaultKeep)
}

// cut returns what can be cut if so many items are to stay.
func (d *decision) cut(keep int) projections.Cut {
	return d.s.History.Cut(d.keep(keep), d.env.Definition.ShowAtMost)
}

// compactHistory compacts the history for a command.
func (d *decision) compactHistory(c messages.Compact) error {
	how := cmp.Or(c.How, d.env.Definition.Compact.How)
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

// window replaces the older part of the history by a line of text.
func (d *decision) window(cut projections.Cut, turn messages.TurnID, reason string) {
	d.emit(messages.HistoryCompacted{
		Turn: turn, Upto: cut.Upto, Dropped: cut.Dropped, Kept: cut.Kept, How: messages.CompactWindow,
		Text:   fmt.Sprintf("Earlier parts of this conversation, %d items, are left out here.", d.s.History.Omitted()+cut.Dropped),
		Reason: reason,
	})
}

// windowReason returns the reason of a window that takes the place of a summary with its own
// reason.
func windowReason(why, reason string) string {
	if reason == "" {
		return why
	}
	return why + "; " + reason
}

// summarize requests an attempt at a summary. One that a limit does not allow becomes a window.
func (d *decision) summarize(s messages.CompactionRequested, cut projections.Cut) {
	s.Model = cmp.Or(d.env.Definition.Compact.Model, d.env.Definition.Model)
	need := projections.Use{}
	if d.budgeted() {
		if need = d.expected(s.Model, cut.Summarized); d.tooMuch(need) {
			d.window(cut, s.Turn, windowReason("a limit does not allow a summary", s.Reason))
			return
		}
	}
	s.Call, s.Attempt = messages.CallID(numbered("s", d.number())), s.Attempt+1
	s.Upto, s.Digest, s.Tokens, s.Cost = cut.Upto, string(cut.Digest), need.Tokens, need.Cost
	s.Definition = d.env.Definition.Digest
	d.emit(s)
}

// tooMuch reports whether a limit does not allow so much more.
func (d *decision) tooMuch(need projections.Use) bool {
	over := func(b budget) bool {
		b.limits = messages.Limits{MaxTokens: b.limits.MaxTokens, MaxCost: b.limits.MaxCost}
		return b.exceeded(need).Limit != ""
	}
	turn, agent := d.budgets()
	return over(agent) || d.s.Turn != nil && over(turn)
}

// requestSize returns how many bytes the next model call is expected to have.
func (d *decision) requestSize() int {
	size := d.s.History.SizeShown(d.env.Definition.ShowAtMost) + d.env.Definition.Overhead
	for _, q := range d.s.Inputs.Steered {
		size += q.Size
	}
	return size
}

func tokensOf(size int) int { return (size + bytesPerToken - 1) / bytesPerToken }

// summarized puts a summary in the place of what it was made of. If the history has changed
// there, another one is made.
func (d *decision) summarized(c messages.CompactionRequested, o Summarized) {
	if d.s.History.DigestBefore(c.Upto) != messages.Digest(c.Digest) {
		d.retrySummary(c, ModelErred{Kind: messages.ModelFailureChanged, Message: "the history is not what the summary was made of any more", Temporary: true, Usage: o.Usage, Unknown: true}, time.Time{})
		return
	}
	dropped, kept := d.s.History.Drops(c.Upto)
	ev := messages.HistoryCompacted{
		Turn: c.Turn, Upto: c.Upto, Dropped: dropped, Kept: kept, How: messages.CompactSummary, Text: o.Text,
		Call: c.Call, Model: c.Model, Usage: o.Usage, Cost: d.env.Definition.Prices[c.Model].Cost(o.Usage), Reason: c.Reason,
	}
	if o.Usage == (messages.Usage{}) { // the server does not report it
		ev.Unknown, ev.Tokens, ev.Cost = true, c.Tokens, c.Cost
	}
	d.emit(ev)
}

// lostSummary records that a summary was lost with its process, and tries again.
func (d *decision) lostSummary() {
	d.retrySummary(*d.s.Summary, ModelErred{Kind: messages.ModelFailureRestarted, Message: "its process was lost before the summary was recorded", Temporary: true, Unknown: true}, time.Time{})
}

// dropSummary drops the summary that the turn waits for; an empty turn, any.
func (d *decision) dropSummary(turn messages.TurnID, why string) {
	if c := d.s.Summary; c != nil && (turn == "" || c.Turn == turn) {
		d.summaryFailed(*c, ModelErred{Kind: messages.ModelFailureInterrupted, Message: why, Unknown: true})
	}
}

// summaryFailed records a failed attempt, and what it has used.
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

// retrySummary records a failed attempt and makes another one, not before a time. After the last
// one, or a failure that is not temporary, a window takes its place.
func (d *decision) retrySummary(c messages.CompactionRequested, o ModelErred, notBefore time.Time) {
	d.summaryFailed(c, o)
	switch cut := d.cut(c.Keep); {
	case cut.Upto == 0:
	case c.Attempt >= maxSummaries || !o.Temporary:
		d.window(cut, c.Turn, windowReason("no summary could be made", c.Reason))
	default:
		if c.NotBefore = nil; !notBefore.IsZero() {
			at := logTime(notBefore)
			c.NotBefore = &at
		}
		d.summarize(c, cut)
	}
}
