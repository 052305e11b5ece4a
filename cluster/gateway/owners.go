package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

const (
	// ownerWithin is how long an owner may take to answer for its partitions, ownWithin how long this
	// node may for its own.
	ownerWithin, ownWithin = 3 * time.Second, 30 * time.Second
	// movesWithin is how long a view of all agents waits for the owner of a partition that moves.
	movesWithin = 2 * time.Second
)

// ownersQuery asks an owner for rows of a view of all agents: for those of its partitions.
type ownersQuery struct {
	// Tenant is that of the agents. Empty: all.
	Tenant string `json:"tenant,omitempty"`
	// Only is the one agent that is asked for. Zero: all are.
	Only messages.AgentID `json:"only,omitzero"`
	messages.Query
}

// owned is the answer of an owner.
type owned struct {
	// Partitions are those that it answers for.
	Partitions []messages.Partition `json:"partitions"`
	Rows       []ownedRow           `json:"rows,omitempty"`
	// More reports whether there are rows behind the last one.
	More bool `json:"more,omitempty"`
	// Lacks are those of which the rows do not show everything, Unreadable is how many frames of
	// their agents could not be read.
	Lacks      []messages.Uncovered `json:"lacks,omitempty"`
	Unreadable int                  `json:"unreadable,omitempty"`
	// Encrypted is how many of their agents were not searched for words.
	Encrypted int `json:"encrypted,omitempty"`
}

// ownedRow is a row of a view. Key orders the rows of all owners, Cursor asks for what comes behind it.
type ownedRow struct {
	Key    string          `json:"key"`
	Cursor string          `json:"cursor"`
	Line   json.RawMessage `json:"line"`
}

// held is how many agents a partition has: a row of the view partitions as its owner sends it.
type held struct {
	Partition messages.Partition
	Agents    int
	Owing     int
}

// ownersSubject is the subject on which a node answers for the partitions that it owns.
func (g *Gateway) ownersSubject(node string) string {
	root, _, _ := strings.Cut(g.Subjects.Any("q"), ".")
	return "_actor." + root + ".view." + node
}

// queryOwned answers another node's endpoint for the partitions that this node owns.
func (g *Gateway) queryOwned(msg *nats.Msg) {
	if !g.answerable(msg) {
		return
	}
	var q ownersQuery
	if err := json.Unmarshal(msg.Data, &q); err != nil {
		g.replyTo(msg).fail(messages.Refuse(messages.BadInput, "the query of another node cannot be read (%v): run one version on all nodes", err))
		return
	}
	g.page(msg, q.Query, func(p *page) error {
		answer, err := g.owned(q, ownerWithin) // behind that the other node does not wait for it
		p.line(0, answer)
		return err
	})
}

// owned answers for the partitions that this node owns, which are the same before and after: what it
// knew of one that it lost and took again was dropped between. What takes longer than within is given
// up.
func (g *Gateway) owned(q ownersQuery, within time.Duration) (answer owned, err error) {
	ctx, cancel := context.WithTimeout(g.ctx, within)
	defer cancel()
	for mine, epochs := g.mine(); ; {
		answer = owned{Partitions: mine}
		if err := g.ownedLines(ctx, &answer, q); err != nil {
			return owned{}, err
		}
		if q.Tenant != "" { // the index has read on for the rows
			answer.Unreadable = g.Index.Unreadable(q.Tenant)
		}
		still, now := g.mine()
		if slices.Equal(mine, still) && slices.Equal(epochs, now) {
			return answer, nil
		}
		mine, epochs = still, now
	}
}

// ownedLines adds what an answer shows of its partitions.
func (g *Gateway) ownedLines(ctx context.Context, answer *owned, q ownersQuery) (err error) {
	switch q.View {
	case "partitions":
		for _, p := range answer.Partitions {
			err = cmp.Or(err, answer.add(keyOf(p), "", held{p, g.Agents.In(p), g.Cluster.Owing(p)}))
		}
		return err
	case "index":
		return g.ownedPositions(answer)
	case "approvals", "usage", "effects", "find":
		return g.ownedRows(ctx, answer, q)
	}
	return g.ownedAgents(answer, q)
}

// mine are the partitions that this node owns and answers for, with their epochs.
func (g *Gateway) mine() (list []messages.Partition, epochs []messages.Epoch) {
	for p := range messages.Partition(messages.Partitions) {
		if !g.hosts(p) || g.ownerOf(p) != g.Self {
			continue
		}
		list = append(list, p)
		if g.Epoch != nil {
			epochs = append(epochs, g.Epoch(p))
		}
	}
	return list, epochs
}

// ownedAgents adds the agents of the partitions, in the order of their addresses.
func (g *Gateway) ownedAgents(answer *owned, q ownersQuery) error {
	if q.Only != (messages.AgentID{}) {
		if row, known := g.Agents.Agent(q.Only); known && slices.Contains(answer.Partitions, q.Only.Partition()) {
			return answer.add("", "", row)
		}
		return nil
	}
	after, err := afterAgent(q)
	if err != nil {
		return err
	}
	most := mostLines(q.Limit)
	rows := g.Agents.List(projections.AgentFilter{
		Tenant: q.Tenant, Kind: q.Kind, Phase: q.Phase, Failed: q.Last != "", Deleted: q.Deleted, Since: q.Since, After: after, Limit: most + 1,
		Of: func(p messages.Partition) bool { _, found := slices.BinarySearch(answer.Partitions, p); return found },
	})
	answer.More = len(rows) > most
	for _, row := range rows[:min(most, len(rows))] {
		row.Owner = g.Self
		if err := answer.add(row.Agent.Tenant+"\x00"+row.Agent.Kind+"\x00"+row.Agent.Key, row.Agent.Full(), row); err != nil {
			return err
		}
	}
	return nil
}

// afterAgent returns the agent behind which a page begins.
func afterAgent(q ownersQuery) (after messages.AgentID, err error) {
	if q.Cursor == "" {
		return messages.AgentID{Tenant: q.Tenant}, nil
	}
	after, err = messages.ParseAgentID(q.Cursor)
	if err != nil || q.Tenant != "" && after.Tenant != q.Tenant {
		return after, messages.Refuse(messages.BadInput, "cursor %q: this view did not return it; begin without one", q.Cursor)
	}
	return after, nil
}

// add adds a row. One that is JSON already is kept as it is.
func (o *owned) add(key, cursor string, row any) error {
	line, err := marshalled(row)
	o.Rows = append(o.Rows, ownedRow{key, cursor, line})
	return err
}

// keyOf orders rows by their partitions.
func keyOf(p messages.Partition) string { return fmt.Sprintf("%02d", p) }

// ofOwners answers a view with the rows of all owners, merged in their order. Where the page
// ends before all that an owner has, so does what is shown of the others.
func (g *Gateway) ofOwners(p *page, q ownersQuery) error {
	answers, uncovered, err := g.askOwners(q)
	if err != nil {
		return err
	}
	p.uncovered = uncovered
	for _, o := range answers {
		p.unreadable += o.Unreadable
		p.encrypted += o.Encrypted
	}
	for rows := range merged(answers) {
		line := rows[0].Line
		if q.View == "usage" {
			if line, err = summed(rows); err != nil {
				return err
			}
		}
		if !p.after(rows[0].Cursor, line) {
			return nil
		}
	}
	p.more = slices.ContainsFunc(answers, func(o owned) bool { return o.More })
	return nil
}

// merged yields the rows of all answers in their order, those with one key together, up to where
// one of them may lack some.
func merged(answers []owned) iter.Seq[[]ownedRow] {
	return func(yield func([]ownedRow) bool) {
		left := make([][]ownedRow, len(answers))
		for i, o := range answers {
			left[i] = o.Rows
		}
		for {
			var same []ownedRow
			var of []int
			for i, rows := range left {
				switch {
				case len(rows) == 0 && answers[i].More:
					return
				case len(rows) == 0 || len(same) > 0 && rows[0].Key > same[0].Key:
					continue
				case len(same) > 0 && rows[0].Key < same[0].Key:
					same, of = nil, nil
				}
				same, of = append(same, rows[0]), append(of, i)
			}
			if len(same) == 0 || !yield(same) {
				return
			}
			for _, i := range of {
				left[i] = left[i][1:]
			}
		}
	}
}

// askOwners asks all owners at once, each in one request, and returns for which partitions none has
// answered. On the first page it waits for those that move.
func (g *Gateway) askOwners(q ownersQuery) (answers []owned, uncovered []messages.Uncovered, err error) {
	for until := time.Now().Add(movesWithin); ; {
		answers, unowned, lacks, err := g.askOnce(g.ctx, q)
		uncovered = append(unowned, lacks...)
		if err != nil || len(unowned) == 0 || q.Cursor != "" || time.Now().After(until) {
			return answers, uncovered, err
		}
		select {
		case <-time.After(ownersAgain):
		case <-g.ctx.Done():
			return answers, uncovered, nil
		}
	}
}

// ownersAgain is how long after an answer that lacks partitions owners are asked again.
const ownersAgain = 100 * time.Millisecond

// askOnce asks each owner once, and returns the partitions that none answers for, and those of which
// one does not show everything. A query that one of them calls wrong is refused, and so is one that
// some refuse and none answers.
func (g *Gateway) askOnce(ctx context.Context, q ownersQuery) (answers []owned, unowned, lacks []messages.Uncovered, err error) {
	ctx, cancel := context.WithTimeout(ctx, ownerWithin)
	defer cancel()
	type asked struct {
		owned
		err error
	}
	owners := make(map[string]*asked)
	var of [messages.Partitions]string
	for p := range of {
		of[p] = g.ownerOf(messages.Partition(p))
		owners[of[p]] = new(asked)
	}
	delete(owners, "")
	var asking sync.WaitGroup
	for node, one := range owners {
		asking.Go(func() { one.owned, one.err = g.askOwner(ctx, node, q) })
	}
	asking.Wait()
	var covered [messages.Partitions]int
	for _, node := range slices.Sorted(maps.Keys(owners)) {
		one, refused := owners[node], new(messages.Error)
		switch {
		case errors.As(one.err, &refused) && refused.Code == messages.BadInput:
			return nil, nil, nil, refused
		case errors.As(one.err, &refused):
			err = refused
			continue
		case one.err != nil:
			continue
		}
		for _, p := range one.Partitions {
			covered[p]++
		}
		answers, lacks = append(answers, one.owned), append(lacks, one.Lacks...)
	}
	if len(answers) == 0 && err != nil {
		return nil, nil, nil, err
	}
	for p, answered := range covered {
		reason := "has no owner"
		switch one := owners[of[p]]; {
		case answered == 1:
			continue
		case answered > 1:
			reason = "has moved meanwhile, and what it holds is shown twice"
		case one != nil && one.err != nil:
			reason = fmt.Sprintf("is not answered for by its owner, node %s: %v", of[p], one.err)
		case one != nil:
			reason = "is changing hands"
		}
		unowned = append(unowned, messages.Uncovered{Partition: messages.Partition(p), Reason: reason})
	}
	return answers, unowned, lacks, nil
}

// askOwner asks one node for the partitions that it owns.
func (g *Gateway) askOwner(ctx context.Context, node string, q ownersQuery) (answer owned, err error) {
	if node == g.Self {
		return g.owned(q, ownWithin)
	}
	body, err := json.Marshal(q)
	if err != nil {
		return owned{}, err
	}
	ask := &nats.Msg{Subject: g.ownersSubject(node), Reply: g.Conn.NewInbox(), Data: body, Header: nats.Header{messages.HeaderAlive: {"1"}}}
	answers, err := g.Conn.SubscribeSync(ask.Reply)
	if err != nil {
		return owned{}, err
	}
	defer func() { _ = answers.Unsubscribe() }()
	if err := g.Conn.PublishMsg(ask); err != nil {
		return owned{}, err
	}
	var whole []byte
	for parts := 0; ; {
		m, err := answers.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return owned{}, errors.New("it has stopped, or runs an older version")
		case errors.Is(err, context.DeadlineExceeded):
			return owned{}, fmt.Errorf("no answer within %v", ownerWithin)
		case err != nil:
			return owned{}, err
		case m.Header.Get(micro.ErrorHeader) != "":
			return owned{}, messages.Refuse(messages.Code(m.Header.Get(messages.HeaderCode)), "%s", m.Header.Get(micro.ErrorHeader))
		case m.Header.Get(messages.HeaderPart) == "": // it is at work
			continue
		}
		if parts++; m.Header.Get(messages.HeaderPart) != fmt.Sprint(parts) {
			return owned{}, errors.New("a part of the answer was lost")
		}
		if whole = append(whole, m.Data...); len(m.Data) == 0 {
			return answer, json.Unmarshal(whole, &answer)
		}
	}
}

// AllAgents yields the agents of all tenants that q chooses, of those partitions whose owners
// answer.
func (g *Gateway) AllAgents(q messages.Query) iter.Seq2[projections.Agent, error] {
	q.View = "agents"
	return func(yield func(projections.Agent, error) bool) {
		for more := true; more; {
			answers, _, err := g.askOwners(ownersQuery{Query: q})
			if err != nil {
				yield(projections.Agent{}, err)
				return
			}
			for rows := range merged(answers) {
				row := rows[0]
				var agent projections.Agent
				err := json.Unmarshal(row.Line, &agent)
				if q.Cursor = row.Cursor; !yield(agent, err) || err != nil {
					return
				}
			}
			more = slices.ContainsFunc(answers, func(o owned) bool { return o.More })
		}
	}
}
