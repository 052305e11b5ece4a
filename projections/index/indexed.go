package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Indexed is what the file holds of one agent.
type Indexed struct {
	// Effects are the lines of its tool calls, in the order of their events.
	Effects []json.RawMessage
	// Used is the sum of what its model calls used.
	Used projections.Spent
}

// Indexed returns what the file holds of an agent now; nothing if it has none.
func (s *Store) Indexed(ctx context.Context, a messages.AgentID) (Indexed, error) {
	h, err := s.holds(ctx, a)
	return h, s.met(ctx, err)
}

func (s *Store) holds(ctx context.Context, a messages.AgentID) (Indexed, error) {
	var h Indexed
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return h, err
	}
	defer func() { _ = tx.Rollback() }() // it has only read
	var id int64
	err = tx.QueryRowContext(ctx, `SELECT id FROM agents WHERE tenant = ? AND kind = ? AND key = ?`, a.Tenant, a.Kind, a.Key).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return h, nil
	}
	if err != nil {
		return h, err
	}
	if h.Effects, err = heldEffects(ctx, tx, id); err != nil {
		return h, err
	}
	err = tx.QueryRowContext(ctx, `SELECT coalesce(sum(calls), 0), coalesce(sum(lost), 0), coalesce(sum(input), 0), coalesce(sum(output), 0),
		coalesce(sum(cached), 0), coalesce(sum(reasoning), 0), coalesce(sum(cost), 0) FROM usage WHERE agent = ?`, id).
		Scan(&h.Used.Calls, &h.Used.Lost, &h.Used.Usage.Input, &h.Used.Usage.Output, &h.Used.Usage.Cached, &h.Used.Usage.Reasoning, &h.Used.Cost)
	return h, err
}

func heldEffects(ctx context.Context, tx *sql.Tx, agent int64) (list []json.RawMessage, err error) {
	found, err := tx.QueryContext(ctx, `SELECT line FROM effects WHERE agent = ? ORDER BY n`, agent)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var line []byte
		if err := found.Scan(&line); err != nil {
			return nil, fmt.Errorf("%w: %w", errStrange, err)
		}
		list = append(list, line)
	}
	return list, found.Err()
}
