package index

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Position is the newest message of a shard that was applied. The zero value is
// before the first.
type Position struct {
	Seq uint64
	// Agent and Frame are the message's own, by which it is known again. One that is no
	// frame is known by when it was Stored.
	Agent  messages.AgentID
	Frame  messages.FrameID
	Stored time.Time
}

// Same reports whether both positions are of one message.
func (p Position) Same(q Position) bool {
	return p.Seq == q.Seq && p.Agent == q.Agent && p.Frame == q.Frame && (p.Frame != "" || p.Stored.Equal(q.Stored))
}

// Shard is how far a shard was read.
type Shard struct {
	Position
	// Applied is when, by this machine's clock.
	Applied time.Time
	// Unreadable is how many of its frames could not be read; only Shards sets it.
	Unreadable int
}

// Shard is how far a shard was read; for the goroutine that applies.
func (s *Store) Shard(shard int) Shard { return s.shards[shard] }

// ReadFrom records the identity of the stream that a shard is read from, and returns the
// one it was read from before; empty if that is not known.
func (s *Store) ReadFrom(ctx context.Context, shard int, identity string) (before string, err error) {
	err = s.write.QueryRowContext(ctx, `SELECT identity FROM streams WHERE shard = ?`, shard).Scan(&before)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", err
	}
	if before != identity {
		_, err = s.write.ExecContext(ctx, `INSERT OR REPLACE INTO streams (shard, identity) VALUES (?, ?)`, shard, identity)
		return before, err
	}
	return before, nil
}

// Reset drops the position of a shard: it is read from its beginning. It is for the goroutine
// that applies, between batches.
func (s *Store) Reset(ctx context.Context, shard int) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	var ids []int64
	err = each(ctx, tx, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	}, `SELECT id FROM agents WHERE shard = ?`, shard)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := forget(ctx, tx, id); err != nil {
			return err
		}
	}
	if err := eraseWords(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM shards WHERE shard = ?`, shard); err != nil {
		return err
	}
	bad, err := count(ctx, tx)
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.bad.Store(bad)
	delete(s.shards, shard)
	return nil
}

// forget deletes an agent's rows. [eraseWords] must follow in the transaction.
func forget(ctx context.Context, tx *sql.Tx, id int64) error {
	if err := forgetWords(ctx, tx, id); err != nil {
		return err
	}
	for _, statement := range []string{
		`UPDATE hours SET calls = hours.calls - u.calls, failed = hours.failed - u.failed, lost = hours.lost - u.lost, input = hours.input - u.input,
			output = hours.output - u.output, cached = hours.cached - u.cached, reasoning = hours.reasoning - u.reasoning, cost = hours.cost - u.cost
			FROM usage u, agents a WHERE u.agent = ?1 AND a.id = ?1
			AND hours.tenant = a.tenant AND hours.kind = a.kind AND hours.model = u.model AND hours.hour = u.hour AND hours.shard = a.shard`,
		`DELETE FROM hours WHERE calls = 0 AND (tenant, hour, kind, model, shard) IN
			(SELECT a.tenant, u.hour, a.kind, u.model, a.shard FROM usage u, agents a WHERE u.agent = ?1 AND a.id = ?1)`,
		`DELETE FROM usage WHERE agent = ?1`, `DELETE FROM effects WHERE agent = ?1`, `DELETE FROM agents WHERE id = ?1`,
	} {
		if _, err := tx.ExecContext(ctx, statement, id); err != nil {
			return err
		}
	}
	return nil
}

// badOf is whose frames could not be read.
type badOf struct {
	tenant string
	shard  int
}

// Unreadable is how many frames of a tenant's agents in some shards could not be read and are
// left out, as of the newest batch. A nil of: in all. It never waits.
func (s *Store) Unreadable(tenant string, of func(shard int) bool) (frames int) {
	bad := s.bad.Load()
	if bad == nil {
		return 0
	}
	for whose, n := range *bad {
		if whose.tenant == tenant && (of == nil || of(whose.shard)) {
			frames += n
		}
	}
	return frames
}

// count counts the frames that could not be read.
func count(ctx context.Context, q queryer) (*map[badOf]int, error) {
	bad := make(map[badOf]int)
	err := each(ctx, q, func(r *sql.Rows) error {
		var of badOf
		var frames int
		err := r.Scan(&of.tenant, &of.shard, &frames)
		bad[of] = frames
		return err
	}, `SELECT tenant, shard, sum(bad) FROM agents WHERE bad > 0 GROUP BY tenant, shard`)
	return &bad, err
}

// Shards is how far each shard was read, by its number.
func (s *Store) Shards(ctx context.Context) (map[int]Shard, error) {
	list, err := s.positions(ctx)
	return list, s.met(ctx, err)
}

func (s *Store) positions(ctx context.Context) (map[int]Shard, error) {
	list := make(map[int]Shard)
	err := each(ctx, s.read, func(r *sql.Rows) error {
		var shard int
		var stored, applied int64
		var at Shard
		err := r.Scan(&shard, &at.Seq, &at.Agent.Tenant, &at.Agent.Kind, &at.Agent.Key, &at.Frame, &stored, &applied, &at.Unreadable)
		at.Stored, at.Applied = time.Unix(0, stored), time.Unix(0, applied)
		list[shard] = at
		return err
	}, `SELECT shard, seq, tenant, kind, key, frame, stored, applied, (SELECT coalesce(sum(a.bad), 0) FROM agents a WHERE a.shard = shards.shard AND a.bad > 0) FROM shards`)
	return list, err
}
