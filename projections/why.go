package projections

import (
	"cmp"
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// Why is why an event happened: the object of `reprise why -o json`. Its names are promises.
type Why struct {
	Agent messages.AgentID     `json:"agent"`
	N     messages.EventNumber `json:"n"`
	// Chain leads back from the event, the newest line of each agent first. Of an event about a call
	// it begins with what happened to the call later. The lines of a parent stand behind those of
	// its child, those of equal calls last.
	Chain []Cause `json:"chain"`
	// Findings are what is evident from the chain, the most specific first. Empty: nothing is.
	Findings []Finding `json:"findings"`
	// Siblings is how many other children the parent has.
	Siblings int `json:"siblings,omitempty"`
	// Examined is how many of them, the newest ones, were searched for an equal call.
	Examined int `json:"examined,omitempty"`

	call   *madeCall        // that the event is about. Nil: it is about none
	equal  []Cause          // lines about equal calls
	parent *messages.Parent // that the chain comes from
	task   *spawnedChild    // the call of the direct parent. Nil: there is none
	family []spawnedChild   // the other children of the direct parent
	direct messages.AgentID // the direct parent
}

// Of returns the chain as one of agent a, before anything of other agents is added. It is empty if the
// event was not folded.
func (c *Causes) Of(a messages.AgentID) *Why {
	w := &Why{Agent: a, N: c.N, Chain: []Cause{}, Findings: []Finding{}, parent: c.parent}
	w.addChain(a, slices.Concat(c.later(), c.chain))
	if c.call != nil {
		call := c.call.made()
		w.call = &call
		w.findRuns(c.call)
		w.findEqual(c)
	}
	if len(w.Findings) == 0 && c.resends != nil {
		w.find("resent", resentText(c.resends), c.resends.N, c.resends.resends.N)
	}
	return w
}

// later returns what happened to the call of the event after the event, the newest line first.
func (c *Causes) later() (lines []Cause) {
	if c.call == nil {
		return nil
	}
	for _, l := range slices.Backward(c.call.events) {
		if l.N <= c.N || len(lines) == maxLines {
			break
		}
		if l.Relation != CauseDecided {
			l.Relation = CauseThen
		}
		lines = append(lines, l)
	}
	return lines
}

// addChain adds the lines of an agent. Of several lines about one frame the last one has the command.
func (w *Why) addChain(a messages.AgentID, lines []Cause) {
	lines = slices.Clone(lines)
	named := make(map[messages.EventNumber]bool)
	for i := range slices.Backward(lines) {
		l := &lines[i]
		if l.Agent = a; named[l.frame] {
			l.Command, l.ID, l.Endpoint, l.Person = "", "", "", nil
		}
		named[l.frame] = true
	}
	w.Chain = append(w.Chain, lines...)
}

// Parent returns the call of another agent that the chain comes from. Nil: it comes from none.
func (w *Why) Parent() *messages.Caller {
	if w.parent == nil {
		return nil
	}
	return &w.parent.Caller
}

// Above returns the fold of the chain of the parent.
func (w *Why) Above() *Causes {
	c := &Causes{Task: *w.Parent()}
	for _, l := range w.Chain {
		if l.Relation == CauseDecided && l.Endpoint == messages.EndpointPeer {
			c.Decisions = append(c.Decisions, l.ID)
		}
	}
	return c
}

// AddParent adds the chain of the parent p, as c has folded it.
func (w *Why) AddParent(p messages.AgentID, c *Causes) {
	if len(c.chain) == 0 {
		w.AddMissing(p, "the log does not hold the call that the agent works for any more: the parent was deleted since")
		return
	}
	lines := slices.Concat(c.forwarded, c.chain)
	slices.SortStableFunc(lines, newestFirst)
	w.addChain(p, lines)
	if w.parent = c.parent; w.task == nil {
		w.addFamily(p, c)
	}
	w.findElsewhere("parent", p, c, "the agent works for it")
}

// addFamily keeps the other children of the direct parent.
func (w *Why) addFamily(p messages.AgentID, c *Causes) {
	w.direct = p
	known := make(map[string]bool)
	for _, s := range c.spawned {
		switch {
		case s.Turn == c.Task.Turn && s.Call == c.Task.Call:
			w.task = &s
		case !known[s.child]:
			w.family = append(w.family, s)
		}
		known[s.child] = true
	}
	w.Siblings = len(w.family)
}

// Family returns the other children of the direct parent in the agent's tenant, at most limit of them, the
// newest first. An event that is about no call has none.
func (w *Why) Family(limit int) (list []messages.AgentID) {
	if w.call == nil {
		return nil
	}
	for _, s := range slices.Backward(w.family) {
		if a, err := messages.ParseAgentID(s.child); err == nil && a.Tenant == w.Agent.Tenant && len(list) < limit {
			list = append(list, a)
		}
	}
	return list
}

// AddSibling compares the call with those of another child of the direct parent, as c has folded it.
func (w *Why) AddSibling(a messages.AgentID, c *Causes) {
	w.Examined++
	sibling := firstOf(w.family, func(s *spawnedChild) bool { return s.child == a.Full() })
	w.findElsewhere("sibling", a, c, w.siblingText(sibling))
}

// AddMissing ends the chain with an agent whose log cannot be read, and the reason.
func (w *Why) AddMissing(a messages.AgentID, reason string) {
	w.parent = nil
	w.Chain = append(w.Chain, Cause{Relation: CauseMissing, Agent: a, Text: shortened(reason, maxCauseText)})
}

// End adds the lines about equal calls behind the chain. Nothing is added after it.
func (w *Why) End() {
	w.Chain, w.equal = append(w.Chain, w.equal...), nil
}

func newestFirst(a, b Cause) int { return cmp.Compare(b.N, a.N) }
