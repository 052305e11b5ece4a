package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/projections/index"
)

// A tenant finds what its own agents hold; what is of one time by agent.
func TestFindOfATenant(t *testing.T) {
	h := newHouse(t, nil)
	for i := range 5 {
		h.worked(agent("default", "sales", fmt.Sprintf("s%d", i)), fmt.Sprintf("call_%d", i), "refund", fmt.Sprintf(`{"order":%d}`, i%2))
	}
	h.worked(agent("other", "sales", "x"), "call_9", "refund", `{"order":1}`)
	agents := func(q messages.Query) string {
		q.View = "find"
		var list []string
		for _, line := range h.tenant(q) {
			var f projections.Found
			h.ok(json.Unmarshal([]byte(line), &f))
			list = append(list, f.Agent.Key+" "+string(f.What))
		}
		return strings.Join(list, ", ")
	}
	for want, q := range map[string]messages.Query{
		"s1 call, s3 call":          {Text: "refund 1"},
		"s0 call, s2 call, s4 call": {Text: "order 0", Kind: "sales"},
		"s2 call id":                {Text: "call_2"},
		"s0 result, s1 result":      {Text: "ok", Limit: 2},
		"":                          {Text: "refund", Kind: "support"},
	} {
		if got := agents(q); got != want {
			t.Errorf("find %+v: got %q, want %q", q, got, want)
		}
	}
	for _, q := range []messages.Query{{}, {Text: "---"}, {Text: strings.Repeat("x", 10<<10)}, {Text: "x", Tool: "refund"}, {Text: "x", Cursor: "nowhere"}} {
		q.View = "find"
		for _, err := range h.client.QueryTenant(h.ctx, "default", q) {
			if messages.AsError(err).Code != messages.BadInput {
				t.Errorf("find %.40v: got error %v, want %s", q, err, messages.BadInput)
			}
		}
	}
	for f, err := range h.client.Find(h.ctx, "other", "refund", client.Only(messages.Query{Kind: "sales"})) {
		if h.ok(err); f.Agent.Tenant != "other" || f.Snippet != `refund {"order":1}` {
			t.Errorf("the other tenant: got %+v, want its own call", f)
		}
	}
}

// An answer says how many encrypted agents were not searched for words.
func TestFindSaysWhatIsEncrypted(t *testing.T) {
	h := newHouse(t, nil)
	h.worked(till, "call_1", "refund", `{"order":1}`)
	const shard = 1000 // none that the log has
	for i, tenant := range []string{"default", "other"} {
		f := &messages.Frame{First: 1, KeyID: "k", Events: []messages.Event{messages.InputAccepted{Input: "input-7", Content: messages.TextContent("refund")}}}
		m := index.Message{Agent: agent(tenant, "sales", "x"), Seq: uint64(i + 1), Types: []string{f.Events[0].EventType()}, Frame: func() (*messages.Frame, error) { return f, nil }}
		b := h.views.store.Batch()
		h.ok(b.Add(h.ctx, shard, m))
		h.ok(b.Commit(h.ctx))
	}
	var said []uint64
	var found []string
	for line, err := range h.client.QueryTenant(h.ctx, "default", messages.Query{View: "find", Text: "refund"}, func(l client.Lacks) { said = append(said, l.Encrypted) }) {
		h.ok(err)
		found = append(found, string(line))
	}
	if len(found) != 1 || len(said) != 1 || said[0] != 1 {
		t.Errorf("got %s and %d encrypted agents, want the call of %s and 1", found, said, till)
	}
}

// slowIndex is an index whose rows are read when the time for an answer is over.
type slowIndex struct{ views }

type views = Index

func (s slowIndex) Index(ctx context.Context, of []messages.Partition, fresh bool) (*index.Store, []messages.Partition, []messages.Uncovered, error) {
	store, ready, lacks, err := s.views.Index(context.WithoutCancel(ctx), of, fresh)
	<-ctx.Done()
	return store, ready, lacks, err
}

// A query of the index ends with the time that its answer is waited for, and is no damage.
func TestFindEndsInTime(t *testing.T) {
	h := newHouse(t, nil)
	h.worked(till, "call_1", "refund", `{"order":1}`)
	quick := h.g.Index
	for _, q := range []messages.Query{{View: "find", Text: "refund"}, {View: "effects"}} {
		h.g.Index = slowIndex{views: quick}
		_, err := h.g.owned(ownersQuery{Tenant: "default", Query: q}, time.Millisecond)
		if err == nil || messages.AsError(err).Code != messages.Unavailable || !strings.Contains(err.Error(), "narrow the query") {
			t.Errorf("%s: got the error %v", q.View, err)
		}
		h.g.Index = quick
		if answer, err := h.g.owned(ownersQuery{Tenant: "default", Query: q}, ownWithin); err != nil || len(answer.Rows) == 0 {
			t.Errorf("%s: got %d rows, error %v", q.View, len(answer.Rows), err)
		}
	}
}
