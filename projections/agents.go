package projections

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Agent is one agent as a list shows it: the row of `reprise ls`.
type Agent struct {
	Agent messages.AgentID `json:"agent"`
	// Phase is what it is doing.
	Phase messages.AgentPhase `json:"phase"`
	// Turn is the turn that runs or is paused. Empty: the agent is idle.
	Turn messages.TurnID `json:"turn,omitempty"`
	// Waiting is how many of its calls wait for a person.
	Waiting int `json:"waiting,omitempty"`
	// LastFailed is why the newest turn that ended has failed: the kind of the model's failure, or else
	// the reason of its turn.failed. Empty: it has not failed.
	LastFailed string `json:"last_failed,omitempty"`
	// Events is the number of its newest event.
	Events messages.EventNumber `json:"events"`
	// Epoch is that of its newest frame.
	Epoch messages.Epoch `json:"epoch"`
	// Owner is the node that acts for it; empty if none does.
	Owner string `json:"owner,omitempty"`
	// Updated is the time of its newest frame.
	Updated time.Time `json:"updated,omitzero"`
}

// AgentFilter chooses rows of a list. Empty fields choose all but deleted agents, which Phase or
// Deleted chooses.
type AgentFilter struct {
	Tenant, Kind string
	Phase        messages.AgentPhase
	Deleted      bool
	// Failed chooses agents whose newest turn that ended has failed.
	Failed bool
	// After leaves out everything up to this agent in the list's order.
	After messages.AgentID
	// Since leaves out agents without an event since then.
	Since time.Time
	// Of reports whether agents of a partition are chosen. Nil: of all.
	Of func(messages.Partition) bool
	// Limit is the most rows to return; 0 means all.
	Limit int
}

func (f AgentFilter) admits(a messages.AgentID, r agentRow) bool {
	return (f.Of == nil || f.Of(a.Partition())) && (f.Tenant == "" || f.Tenant == a.Tenant) && (f.Kind == "" || f.Kind == a.Kind) &&
		(f.Phase == r.phase || f.Phase == "" && (f.Deleted || r.phase != messages.PhaseDeleted)) &&
		(!f.Failed || r.failed != "") && (f.Since.IsZero() || r.updated >= f.Since.UnixNano())
}

func compareAgents(a, b messages.AgentID) int {
	return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Key, b.Key))
}

// Agents is the list of agents, kept row by row. It is not a fold of one
// agent's events but of the newest heads of many. The zero value is empty.
// Safe for concurrent use.
type Agents struct {
	mu    sync.RWMutex
	rows  [messages.Partitions]map[messages.AgentID]agentRow
	order []messages.AgentID // all but those in added, sorted
	added []messages.AgentID // in no order
	names map[string]string  // tenants, kinds, phases, owners and reasons, each once in memory
	// in is how many agents each partition has, deleted ones left out.
	in [messages.Partitions]int
	// unordered reports whether agents were dropped since: order and added are empty.
	unordered bool
}

// agentRow is a row without its key and without a time's zone.
type agentRow struct {
	phase         messages.AgentPhase
	owner, failed string
	turn          messages.TurnID
	events        messages.EventNumber
	epoch         messages.Epoch
	waiting       int
	updated       int64 // ns since 1970; 0: never
}

// Apply replaces the row of an agent and reports whether it did: a row with fewer events than
// the one that is kept has come late and changes nothing.
func (l *Agents) Apply(row Agent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := row.Agent.Partition()
	if l.rows[p] == nil {
		l.rows[p] = make(map[messages.AgentID]agentRow)
	}
	if l.names == nil {
		l.names = make(map[string]string)
	}
	old, known := l.rows[p][row.Agent]
	if known && row.Events < old.events {
		return false
	}
	id := row.Agent // a known agent's key stays the one it is
	if !known {
		id = messages.AgentID{Tenant: l.name(id.Tenant), Kind: l.name(id.Kind), Key: strings.Clone(id.Key)}
		if !l.unordered {
			l.added = append(l.added, id)
		}
	}
	r := agentRow{phase: messages.AgentPhase(l.name(string(row.Phase))), owner: l.name(row.Owner), failed: l.name(row.LastFailed), events: row.Events, epoch: row.Epoch, waiting: row.Waiting}
	if r.turn = old.turn; row.Turn != old.turn {
		r.turn = messages.TurnID(strings.Clone(string(row.Turn)))
	}
	if !row.Updated.IsZero() {
		r.updated = row.Updated.UnixNano()
	}
	l.rows[p][id] = r
	switch was, is := old.lives(), r.lives(); {
	case is && !was:
		l.in[p]++
	case was && !is:
		l.in[p]--
	}
	return true
}

// Drop removes the rows of a partition.
func (l *Agents) Drop(p messages.Partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rows[p]) > 0 {
		l.order, l.added, l.unordered = nil, nil, true
	}
	l.rows[p], l.in[p] = nil, 0
}

func (l *Agents) name(s string) string {
	known, ok := l.names[s]
	if !ok {
		known = strings.Clone(s)
		l.names[known] = known
	}
	return known
}

// In returns how many agents a partition has, deleted ones left out.
func (l *Agents) In(p messages.Partition) int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.in[p]
}

// Len returns the number of agents on the list.
func (l *Agents) Len() (n int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, rows := range l.rows {
		n += len(rows)
	}
	return n
}

// Agent returns the row of one agent, and reports whether there is one.
func (l *Agents) Agent(a messages.AgentID) (Agent, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	r, ok := l.rows[a.Partition()][a]
	if !ok {
		return Agent{}, false
	}
	return r.row(a), true
}

// List returns the chosen rows, sorted by tenant, kind and key. It is the caller's.
func (l *Agents) List(f AgentFilter) (list []Agent) {
	l.sort()
	l.mu.RLock()
	defer l.mu.RUnlock()
	for l.unordered { // some were dropped meanwhile
		l.mu.RUnlock()
		l.sort()
		l.mu.RLock()
	}
	first, found := slices.BinarySearchFunc(l.order, f.After, compareAgents)
	if found {
		first++
	}
	for _, a := range l.order[first:] {
		if f.Tenant != "" && a.Tenant > f.Tenant {
			break
		}
		if r, there := l.rows[a.Partition()][a]; there && f.admits(a, r) {
			list = append(list, r.row(a))
		}
		if f.Limit > 0 && len(list) == f.Limit {
			break
		}
	}
	return list
}

// sort brings the order of the list up to date.
func (l *Agents) sort() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unordered {
		for _, rows := range l.rows {
			l.added = slices.AppendSeq(l.added, maps.Keys(rows))
		}
		l.unordered = false
	}
	if len(l.added) == 0 {
		return
	}
	l.order, l.added = append(l.order, l.added...), nil
	slices.SortFunc(l.order, compareAgents)
}

// lives reports whether there is a row and its agent is not deleted.
func (r agentRow) lives() bool { return r.phase != "" && r.phase != messages.PhaseDeleted }

func (r agentRow) row(a messages.AgentID) Agent {
	row := Agent{Agent: a, Phase: r.phase, Turn: r.turn, Waiting: r.waiting, LastFailed: r.failed, Events: r.events, Epoch: r.epoch, Owner: r.owner}
	if r.updated != 0 {
		row.Updated = time.Unix(0, r.updated).UTC()
	}
	return row
}
