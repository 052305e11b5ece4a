package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// owners are nodes that share the partitions of a house: the first owns those that leave no rest
// modulo their number, and so on.
func (h *house) owners(names ...string) (gates []*Gateway) {
	for _, name := range names {
		nc, err := nats.Connect(h.nc.ConnectedUrl())
		h.ok(err)
		h.t.Cleanup(nc.Close)
		nodes := Nodes{Self: name, OwnerOf: func(p messages.Partition) string { return names[int(p)%len(names)] }}
		agents, quiet := new(projections.Agents), slog.New(slog.DiscardHandler)
		g := New(Config{
			Conn: nc, Log: memlog.New(), Index: h.index(), Agents: agents, Logger: quiet, Nodes: nodes, Subjects: messages.Subjects{Root: "shared"},
			Broker: NewBroker(nc, messages.Subjects{Root: "shared"}, agents, quiet, func(messages.AgentID, messages.Epoch) {}, nodes),
			Serves: func(string) error { return nil },
		})
		h.t.Cleanup(g.Close)
		gates = append(gates, g)
	}
	return gates
}

// opens opens the endpoints of gateways.
func (h *house) opens(gates ...*Gateway) {
	h.t.Helper()
	for _, g := range gates {
		h.ok(g.Open())
		h.ok(g.Conn.Flush())
	}
}

// listed returns what a client receives of the agents of the default tenant, and what is lacking.
func (h *house) listed(q messages.Query) (agents []string, lacks []string) {
	h.t.Helper()
	q.View = "agents"
	said := func(l client.Lacks) {
		for _, u := range l.Uncovered {
			lacks = append(lacks, u.String())
		}
	}
	for line, err := range client.New(h.nc, "shared").QueryTenant(h.ctx, "default", q, said) {
		h.ok(err)
		var row projections.Agent
		h.ok(json.Unmarshal(line, &row))
		agents = append(agents, row.Agent.String()+" of "+row.Owner)
	}
	return agents, lacks
}

// A list of all agents is merged of what the owners of all partitions have, whichever node is asked
// and however it is cut into pages. What a node knows of partitions that it does not own is not shown.
func TestAgentsOfAllOwners(t *testing.T) {
	h := newHouse(t, nil)
	names := []string{"n1", "n2", "n3"}
	gates := h.owners(names...)
	var want []string
	for i := range 50 {
		a := agent("default", "support", fmt.Sprintf("a%02d", i))
		owner := int(a.Partition()) % len(names)
		gates[owner].Agents.Apply(projections.Agent{Agent: a, Phase: "idle", Events: 4})
		gates[(owner+1)%3].Agents.Apply(projections.Agent{Agent: a, Phase: "running", Events: 3}) // of before it moved
		want = append(want, a.String()+" of "+names[owner])
	}
	h.opens(gates...)
	for _, limit := range []int{0, 1000, 7} {
		if got, lacks := h.listed(messages.Query{Limit: limit}); limit != 7 && !slices.Equal(got, want) || limit == 7 && !slices.Equal(got, want[:7]) || len(lacks) > 0 {
			t.Errorf("limit %d: listed %v, lacking %v", limit, got, lacks)
		}
	}
	var paged []string
	for q := (ownersQuery{Tenant: "default", Query: messages.Query{View: "agents", Limit: 7}}); ; {
		answers, _, err := gates[1].askOwners(q)
		h.ok(err)
		n := 0
		for rows := range merged(answers) {
			if n++; n > 5 { // fewer than any owner sends
				break
			}
			q.Cursor = rows[0].Cursor
			paged = append(paged, q.Cursor)
		}
		if n == 0 {
			break
		}
	}
	if len(paged) != len(want) || !slices.IsSorted(paged) {
		t.Errorf("in pages: %v", paged)
	}
	if got := gates[0].phase(agent("default", "support", "a07")); got != "idle" {
		t.Errorf("a07 is %q", got)
	}
}

// What the indexes of all owners hold is merged, and sums of theirs are summed, as one index of all
// has it.
func TestIndexesOfAllOwners(t *testing.T) {
	h := newHouse(t, nil)
	for i := range 20 {
		h.worked(agent("default", []string{"sales", "support"}[i%2], fmt.Sprintf("s%d", i)), fmt.Sprintf("c%d", i), "refund", fmt.Sprintf(`{"order":%d}`, i))
	}
	whole := h.owners("n1")
	gates := h.owners("n1", "n2", "n3")
	whole[0].Subjects.Root = "whole"
	h.opens(append(gates, whole[0])...)
	for _, q := range []messages.Query{
		{View: "effects"}, {View: "effects", Tool: "refund", Where: map[string]string{"order": "7"}}, {View: "usage"}, {View: "usage", By: "kind"}, {View: "usage", By: "agent"}, {View: "usage", By: "hour"}, {View: "approvals"},
		{View: "find", Text: "refund order"}, {View: "find", Text: "c1"},
	} {
		lines := func(root string, limit int) (all []string) {
			q.Limit = limit
			for line, err := range client.New(h.nc, root).QueryTenant(h.ctx, "default", q, func(l client.Lacks) { t.Errorf("%s lacks %+v", root, l) }) {
				h.ok(err)
				all = append(all, string(line))
			}
			return all
		}
		want := lines("whole", 0)
		if got := lines("shared", 0); !slices.Equal(got, want) {
			t.Errorf("%+v: %s, want %s", q, got, want)
		}
		if got := lines("shared", 3); !slices.Equal(got, want[:min(3, len(want))]) && q.View != "usage" {
			t.Errorf("%+v: %s, want the first of %s", q, got, want)
		}
		var paged []string
		for at := (ownersQuery{Tenant: "default", Query: q}); len(paged) < 100; {
			at.Limit = 2
			answers, _, err := gates[2].askOwners(at)
			h.ok(err)
			n := len(paged)
			for rows := range merged(answers) {
				line, err := summed(rows)
				h.ok(err)
				if rows[0].Cursor != "" {
					at.Cursor = rows[0].Cursor
				}
				paged = append(paged, string(line))
			}
			if len(paged) == n || !slices.ContainsFunc(answers, func(o owned) bool { return o.More }) {
				break
			}
		}
		if (q.View == "usage" || q.View == "find") && !slices.Equal(paged, want) {
			t.Errorf("%+v in pages: %s, want %s", q, paged, want)
		}
	}
}

// A list says which partitions it does not show: those without an owner, and those whose owner does
// not answer.
func TestAgentsOfMissingOwners(t *testing.T) {
	h := newHouse(t, nil)
	gates := h.owners("n1", "n2", "", "n4")
	var want []string
	for i := range 50 {
		a := agent("default", "support", fmt.Sprintf("a%02d", i))
		gates[int(a.Partition())%4].Agents.Apply(projections.Agent{Agent: a, Phase: "idle", Events: 4})
		if int(a.Partition())%4 == 0 {
			want = append(want, a.String()+" of n1")
		}
	}
	h.opens(gates[0])
	_, err := h.nc.Subscribe(gates[3].ownersSubject("n4"), func(*nats.Msg) {}) // it is frozen
	h.ok(err)
	got, lacks := h.listed(messages.Query{})
	if !slices.Equal(got, want) || len(lacks) != 48 || !strings.HasPrefix(lacks[0], "partition 1 is not answered for by its owner, node n2: it has stopped") ||
		lacks[1] != "partition 2 has no owner" || !strings.HasSuffix(lacks[2], "node n4: no answer within 3s") {
		t.Errorf("listed %v, lacking %v", got, lacks)
	}
	if u := (messages.Uncovered{Partition: 12, Indexed: 4100, End: 1234567}).String(); u != "partition 12 indexed to 4,100 of 1,234,567" {
		t.Errorf("it says %s", u)
	}
}

// A list is empty and lacks all partitions if their only owner has died and no other node owns any.
func TestAgentsOfNoOwnerThatAnswers(t *testing.T) {
	h := newHouse(t, nil)
	g := h.owners("n1")[0]
	g.OwnerOf = func(messages.Partition) string { return "n2" }
	h.opens(g)
	got, lacks := h.listed(messages.Query{})
	if len(got) != 0 || len(lacks) != messages.Partitions || !strings.HasPrefix(lacks[0], "partition 0 is not answered for by its owner, node n2: it has stopped") {
		t.Errorf("listed %v, lacking %v", got, lacks)
	}
}

// A partition that moves while all are asked is named, whether no node answers for it or two do.
func TestAgentsOfAPartitionThatMoves(t *testing.T) {
	h := newHouse(t, nil)
	gates := h.owners("n1", "n2")
	h.opens(gates...)
	for to, want := range map[string]string{"n1": "partition 1 has moved meanwhile, and what it holds is shown twice", "n2": "partition 0 is changing hands"} {
		gates[0].OwnerOf = func(messages.Partition) string { return to }
		_, unowned, _, err := gates[1].askOnce(h.ctx, ownersQuery{Query: messages.Query{View: "agents"}})
		if err != nil || len(unowned) != 32 || unowned[0].String() != want {
			t.Errorf("lacking %v, %v; want %s", unowned, err, want)
		}
	}
}

// A node that loses a partition and takes it again while it answers begins again: what it listed may lack
// that partition's agents.
func TestAgentsOfAPartitionThatComesBack(t *testing.T) {
	h := newHouse(t, nil)
	g := h.owners("n1")[0]
	a := agent("default", "support", "a1")
	epoch, asked := messages.Epoch(1), 0
	g.Epoch = func(p messages.Partition) messages.Epoch {
		if asked++; asked == messages.Partitions+1 { // it has listed them
			epoch = 2
			g.Agents.Apply(projections.Agent{Agent: a, Phase: "idle", Events: 4})
		}
		return epoch
	}
	if answer, err := g.owned(ownersQuery{Tenant: "default", Query: messages.Query{View: "agents"}}, ownWithin); err != nil || len(answer.Rows) != 1 {
		t.Errorf("it lists %+v, %v", answer.Rows, err)
	}
}

// A query that an owner refuses is refused.
func TestOwnersRefuse(t *testing.T) {
	h := newHouse(t, nil)
	gates := h.owners("n1", "n2")
	h.opens(gates...)
	if _, err := gates[0].askOwner(context.Background(), "n2", ownersQuery{Tenant: "default", Query: messages.Query{Cursor: "nowhere"}}); messages.AsError(err).Code != messages.BadInput {
		t.Errorf("it says %v", err)
	}
}

// A query that one owner refuses and none answers is refused, whichever others are gone.
func TestOwnersRefuseOrAreGone(t *testing.T) {
	h := newHouse(t, nil)
	g := h.owners("n1")[0]
	names := []string{"n2", "n3", "n4"}
	g.OwnerOf = func(p messages.Partition) string { return names[int(p)%len(names)] }
	_, err := g.Conn.Subscribe(g.ownersSubject("n3"), func(msg *nats.Msg) {
		g.replyTo(msg).fail(messages.Refuse(messages.Internal, "the index is closed"))
	})
	h.ok(err)
	for range 20 {
		if _, _, _, err := g.askOnce(h.ctx, ownersQuery{Tenant: "default", Query: messages.Query{View: "agents"}}); err == nil || messages.AsError(err).Code != messages.Internal {
			t.Fatalf("it is answered: %v", err)
		}
	}
}

// A Go program that does not ask what a list lacks gets an error where it is not whole.
func TestIncompleteListFails(t *testing.T) {
	h := newHouse(t, nil)
	gates := h.owners("n1", "")
	gates[0].Agents.Apply(projections.Agent{Agent: ownedBy(0), Phase: "idle", Events: 4})
	h.opens(gates[0])
	listed := func(o ...client.ViewOption) (n int, failed error) {
		o = append(o, client.Only(messages.Query{Cursor: "default/support/0"})) // a later page waits for no owner
		for _, err := range client.New(h.nc, "shared").Agents(h.ctx, "default", o...) {
			if failed = err; err == nil {
				n++
			}
		}
		return n, failed
	}
	if n, err := listed(); n != 1 || err == nil || messages.AsError(err).Code != messages.Unavailable || !strings.Contains(err.Error(), "partition 1 has no owner") {
		t.Errorf("%d agents, and then %v", n, err)
	}
	if n, err := listed(client.Lacking(func(client.Lacks) {})); n != 1 || err != nil {
		t.Errorf("with what is lacking: %d agents, and then %v", n, err)
	}
}

// ownedBy is an agent whose partition is the owner's where two take turns.
func ownedBy(owner int) messages.AgentID {
	for i := 0; ; i++ {
		if a := agent("default", "support", fmt.Sprintf("a%02d", i)); int(a.Partition())%2 == owner {
			return a
		}
	}
}
