package turn_test

import (
	"slices"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// compactions returns when and how histories are compacted.
func (s *sim) compactions() (c turn.Compact) {
	at, keep, how := 1+s.r.IntN(40), s.r.IntN(5), s.one(messages.CompactSummary, messages.CompactSummary, messages.CompactWindow, "")
	model := s.one("", "scripted/b")
	if s.has(withCompaction, 2) {
		c = turn.Compact{AtTokens: at, Keep: keep, How: how, Model: model}
	}
	return c
}

func (s *sim) compact() messages.Compact {
	return messages.Compact{ID: s.id(), Keep: s.r.IntN(5), How: s.one("", messages.CompactSummary, messages.CompactWindow), Reason: s.one("", "too long")}
}

// summaryComes is what comes of a summary.
func (s *sim) summaryComes(e turn.Effect) any {
	usage := messages.Usage{Input: s.r.IntN(30), Output: s.r.IntN(12)}
	if s.chance(5) { // not every server reports it
		usage = messages.Usage{}
	}
	if s.chance(3) {
		return turn.ModelErred{Call: e.Call, Kind: "network", Message: "gone", Temporary: s.chance(2), Usage: usage, Unknown: s.chance(2)}
	}
	return turn.Summarized{Call: e.Call, Text: "in short", Usage: usage}
}

// summaryFacts is the summary under way, as the events record it.
type summaryFacts struct {
	asked *messages.CompactionRequested
	tries int
}

func (c *checker) compactionEvent(ev messages.Event) {
	f := &c.summary
	switch ev := ev.(type) {
	case messages.CompactionRequested:
		c.must(f.asked == nil, "two summaries at once")
		c.must(ev.Turn == "" || c.open != nil && c.open.id == ev.Turn && c.open.idle(), "a turn waits for a summary that runs, or another one does")
		c.must(ev.Upto > 0 && ev.Upto < c.n, "a summary of nothing, or of what is to come")
		if f.tries++; ev.Attempt == 1 {
			f.tries = 1
		}
		c.must(ev.Attempt == f.tries && f.tries <= 3, "a summary is tried forever")
		f.asked = &ev
		c.triesAgain(ev.Turn)
	case messages.CompactionFailed:
		c.must(f.asked != nil && f.asked.Call == ev.Call && f.asked.Turn == ev.Turn, "a summary failed that was not asked for")
		_, back := c.cmd.(turn.Recover)
		c.must(c.cmd == nil || ev.Kind != "restarted" || back, "a summary was lost without a crash")
		tokens := ev.Usage.Tokens()
		if ev.Unknown {
			tokens = f.asked.Tokens
			c.must(ev.Tokens == f.asked.Tokens && ev.Cost == f.asked.Cost && ev.Usage == (messages.Usage{}), "a lost summary counts as something else than what was expected of it")
		}
		c.usesForSummary(ev.Turn, ev.Usage, tokens, ev.Cost)
		f.asked = nil
	case messages.HistoryCompacted:
		tokens := ev.Usage.Tokens()
		if ev.How == messages.CompactSummary {
			c.must(f.asked != nil && f.asked.Call == ev.Call && f.asked.Turn == ev.Turn && f.asked.Upto == ev.Upto, "a summary that was not asked for")
			if ev.Usage == (messages.Usage{}) {
				tokens = f.asked.Tokens
				c.must(ev.Unknown && ev.Tokens == tokens && ev.Cost == f.asked.Cost, "a summary without reported usage counts as nothing")
			}
			f.asked = nil
		}
		c.usesForSummary(ev.Turn, ev.Usage, tokens, ev.Cost)
		c.must(ev.Dropped > 0 && ev.Text != "", "nothing was compacted")
		c.triesAgain(ev.Turn)
		c.shorter(ev.Turn)
	}
}

// triesAgain holds that a compaction after a failed model call is for one that was too long,
// and lets that be made once more.
func (c *checker) triesAgain(turn messages.TurnID) {
	if o := c.open; o != nil && o.id == turn && o.model != nil && o.model.fatal {
		c.must(o.model.newest == "context_length" && !o.model.shorter, "a compaction for a model call that was not too long, or twice")
		o.model.fatal = false
	}
}

// shorter notes that a model that refused the length of a request is sent another one, in which
// what was refused for another reason is still there.
func (c *checker) shorter(turn messages.TurnID) {
	o := c.open
	if o == nil || o.id != turn || o.model == nil || o.model.refused == "" {
		return
	}
	if o.model.refused == "context_length" {
		o.model.refused = ""
	}
	o.model.failures, o.model.shorter = 0, true
}

// idle reports whether nothing of the turn is under way.
func (o *openTurn) idle() bool {
	return o.paused == "" && o.count(running)+o.count(open) == 0 && (o.model == nil || !o.model.underWay && !o.model.waiting)
}

func (c *checker) usesForSummary(turn messages.TurnID, u messages.Usage, tokens int, cost messages.Cost) {
	c.used.Tokens, c.used.Cost = c.used.Tokens+tokens, c.used.Cost+cost
	if o := c.open; o != nil && o.id == turn {
		o.usage = o.usage.Add(u)
		o.used.Tokens, o.used.Cost = o.used.Tokens+tokens, o.used.Cost+cost
	}
}

// hold checks that a summary that was asked for is made, and returns the other
// effects and those of the turn.
func (f *summaryFacts) hold(c *checker, effects []turn.Effect) (rest []turn.Effect) {
	made := 0
	for _, e := range effects {
		if e.Do != turn.Summarize {
			rest = append(rest, e)
			continue
		}
		made++
		c.must(f.asked != nil && f.asked.Call == e.Call && f.asked.Turn == e.Turn && f.asked.Attempt == e.Attempt, "a summary is made that was not asked for")
		if e.Turn != "" {
			rest = append(rest, e)
		}
	}
	c.must((made == 1) == (f.asked != nil) && made < 2, "a summary is not made, or twice")
	c.must(f.asked == nil || c.s.live.Open(), "an agent sleeps while a summary is made")
	return slices.Clip(rest)
}

// sees checks that the model is given the inputs of its turn, and of those that it
// continues, whatever was compacted.
func (c *checker) sees() {
	o, shown := c.open, 0
	for _, item := range c.s.live.History.View() {
		if item.Role == messages.RoleUser && (item.Turn == o.id || slices.Contains(o.before, item.Turn)) {
			shown++
		}
	}
	c.must(shown == o.shown+o.admitted, "a model was asked without an input of its turn")
}
