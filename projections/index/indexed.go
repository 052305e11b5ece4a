package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Indexed is what the file holds of one agent.
type Indexed struct {
	// Effects are the lines of its tool calls, in the order of their events.
	Effects []json.RawMessage
	// Used is the sum of what its model calls used.
	Used projections.Used
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
	err = each(ctx, tx, func(r *sql.Rows) error {
		var line []byte
		var crc uint32
		var of sql.NullInt64
		err := r.Scan(&line, &crc, &of)
		if whole, strange := effectLine(line, crc, of.Int64); strange == nil {
			line = whole
		}
		h.Effects = append(h.Effects, line)
		return err
	}, `SELECT e.line, e.crc, `+repeats+` FROM effects e WHERE e.agent = ? ORDER BY e.n`, id)
	if err != nil {
		return h, err
	}
	err = each(ctx, tx, func(r *sql.Rows) error {
		total, err := sum(r, UsageQuery{By: "total"})
		if err == nil {
			h.Used = total.Line.(projections.UsageSum).Used
		}
		return err
	}, `SELECT '', '', 0, `+sums+` FROM usage u WHERE agent = ?`, id)
	return h, err
}
