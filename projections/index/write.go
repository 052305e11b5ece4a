package index

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// writer writes a batch. Its first error is kept and nothing follows it.
type writer struct {
	ctx        context.Context
	tx         *sql.Tx
	statements map[string]*sql.Stmt
	hours      map[hourAt]used
	items      []item
	gone       bool // an agent was deleted
	err        error
}

type hourAt struct {
	tenant, kind string
	shard        int
	usedAt
}

// prepared is the statement, made ready once; nil after an error.
func (w *writer) prepared(statement string) *sql.Stmt {
	if w.err != nil {
		return nil
	}
	prepared := w.statements[statement]
	if prepared == nil {
		prepared, w.err = w.tx.PrepareContext(w.ctx, statement)
		w.statements[statement] = prepared // it ends with the transaction
	}
	return prepared
}

func (w *writer) do(statement string, args ...any) { _ = w.insert(statement, args...) }

// insert is do for a statement that inserts a row, whose id it returns.
func (w *writer) insert(statement string, args ...any) (id int64) {
	prepared := w.prepared(statement)
	if w.err != nil {
		return 0
	}
	done, err := prepared.ExecContext(w.ctx, args...)
	if err == nil {
		id, err = done.LastInsertId()
	}
	w.err = err
	return id
}

// agent writes the results of an agent's frames.
func (w *writer) agent(a messages.AgentID, f *folding) {
	for _, id := range f.gone {
		if w.gone = true; w.err == nil {
			w.err = forget(w.ctx, w.tx, id)
		}
	}
	calls := f.effects.List(a)
	asked := f.usage.Asked()
	if f.id == 0 && len(calls) == 0 && len(asked) == 0 && len(f.used) == 0 && len(f.said) == 0 && f.bad == 0 && !f.encrypted {
		return
	}
	c := carry{Asked: asked}
	for _, e := range calls {
		if e.Ended == 0 {
			c.Effects = append(c.Effects, e)
		}
	}
	var raw []byte
	if len(c.Effects)+len(c.Asked) > 0 {
		raw = w.json(c)
	}
	if f.id == 0 {
		f.id = w.insert(`INSERT INTO agents (shard, tenant, kind, key, last, bad, forked, encrypted, carry) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, f.shard, a.Tenant, a.Kind, a.Key, int64(f.last), f.bad, int64(f.forked), f.encrypted, raw)
	} else {
		w.do(`UPDATE agents SET last = ?, bad = ?, forked = ?, encrypted = ?, carry = ? WHERE id = ?`, int64(f.last), f.bad, int64(f.forked), f.encrypted, raw, f.id)
	}
	for _, e := range calls {
		w.effect(f, e)
	}
	for _, it := range f.said {
		it.agent, it.tenant = f.id, a.Tenant
		w.items = append(w.items, it)
	}
	for at, s := range f.used {
		w.do(`INSERT INTO usage (agent, model, hour, `+counts+`) VALUES (?, ?, ?, `+marks+`) ON CONFLICT (agent, model, hour) DO UPDATE SET `+more,
			append([]any{f.id, at.model, at.hour}, s.values()...)...)
		key := hourAt{a.Tenant, a.Kind, f.shard, at}
		w.hours[key] = w.hours[key].plus(s)
	}
}

func (w *writer) json(v any) []byte {
	b, err := json.Marshal(v)
	if w.err == nil {
		w.err = err
	}
	return b
}

func (w *writer) effect(f *folding, e projections.Effect) {
	line := w.json(e)
	var same, acted any
	if sum := e.Sum(); sum != 0 {
		if same = sum; e.MayHaveActed() {
			acted = sum
		}
	}
	w.do(`INSERT INTO effects (agent, n, shard, tenant, kind, name, tool, outcome, at, call, key, same, acted, leaves, line, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (agent, n) DO UPDATE SET tool = excluded.tool, outcome = excluded.outcome, key = excluded.key, same = excluded.same, acted = excluded.acted, leaves = excluded.leaves, line = excluded.line, crc = excluded.crc`,
		f.id, int64(e.N), f.shard, e.Agent.Tenant, e.Agent.Kind, e.Agent.Key, e.Tool, string(e.Outcome), e.At.UnixNano(), string(e.ID), e.Key, same, acted, projections.Leaves(e.Arguments), line, checksum(line))
}

// sums adds what agents have used to the sums of their shards.
func (w *writer) sums() {
	for at, s := range w.hours {
		w.do(`INSERT INTO hours (tenant, hour, kind, model, shard, `+counts+`) VALUES (?, ?, ?, ?, ?, `+marks+`) ON CONFLICT (tenant, hour, kind, model, shard) DO UPDATE SET `+more,
			append([]any{at.tenant, at.hour, at.kind, at.model, at.shard}, s.values()...)...)
	}
}

// The columns of what was used. What servers report may be absurd: a sum stays
// a number.
const (
	counts = `calls, failed, lost, input, output, cached, reasoning, cost`
	marks  = `?, ?, ?, ?, ?, ?, ?, ?`
	more   = `calls = calls + excluded.calls, failed = failed + excluded.failed, lost = lost + excluded.lost, input = input + excluded.input,
		output = output + excluded.output, cached = cached + excluded.cached, reasoning = reasoning + excluded.reasoning,
		cost = max(min(cost + excluded.cost, 9000000000000000000), -9000000000000000000)`
)

func (s used) values() []any {
	return []any{s.Calls, s.failed, s.Lost, s.Usage.Input, s.Usage.Output, s.Usage.Cached, s.Usage.Reasoning, int64(s.Cost)}
}

func (s used) plus(t used) used {
	return used{s.Plus(t.Used), s.failed + t.failed}
}

// position records how far a shard was read.
func (w *writer) position(shard int, at Shard) {
	w.do(`INSERT OR REPLACE INTO shards (shard, seq, tenant, kind, key, frame, stored, applied) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		shard, int64(at.Seq), at.Agent.Tenant, at.Agent.Kind, at.Agent.Key, string(at.Frame), at.Stored.UnixNano(), at.Applied.UnixNano())
}
