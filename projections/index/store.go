package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/gofrs/flock"
	"modernc.org/sqlite"
)

// version is that of the folds and of the tables: a file of another one is
// dropped.
const version = 9

// schema is the tables. Times are nanoseconds since 1970, hours those since 1970.
const schema = `
CREATE TABLE shards (
	shard INTEGER PRIMARY KEY,
	seq INTEGER NOT NULL, tenant TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, frame TEXT NOT NULL, stored INTEGER NOT NULL, -- the newest message applied
	applied INTEGER NOT NULL);
CREATE TABLE streams (shard INTEGER PRIMARY KEY, identity TEXT NOT NULL); -- what a shard is read from
CREATE TABLE agents (
	id INTEGER PRIMARY KEY, shard INTEGER NOT NULL,
	tenant TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
	last INTEGER NOT NULL,
	bad INTEGER NOT NULL DEFAULT 0, -- frames that could not be read
	forked INTEGER NOT NULL DEFAULT 0, -- the event at which it was forked
	encrypted INTEGER NOT NULL DEFAULT 0, -- its words are not in items
	carry BLOB, -- what the folds remember; NULL: nothing
	UNIQUE (tenant, kind, key));
CREATE INDEX agents_shard ON agents (shard);
CREATE INDEX agents_bad ON agents (tenant, shard, bad) WHERE bad > 0;
CREATE INDEX agents_encrypted ON agents (tenant) WHERE encrypted;
CREATE TABLE effects (
	agent INTEGER NOT NULL, n INTEGER NOT NULL,
	shard INTEGER NOT NULL, tenant TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, -- of the agent; name is its key
	tool TEXT NOT NULL, outcome TEXT NOT NULL, at INTEGER NOT NULL,
	call TEXT NOT NULL, key TEXT NOT NULL,
	same INTEGER, -- equal for calls that ask for the same; NULL: a repeat does no harm
	acted INTEGER, -- same, of a call that may have had its effect
	leaves TEXT NOT NULL, line BLOB NOT NULL, crc INTEGER NOT NULL, -- crc is that of line
	PRIMARY KEY (agent, n)) WITHOUT ROWID;
CREATE INDEX effects_at ON effects (tenant, at);
CREATE INDEX effects_tool ON effects (tenant, tool, at);
CREATE INDEX effects_outcome ON effects (tenant, outcome, at) WHERE outcome <> 'completed';
CREATE INDEX effects_acted ON effects (agent, acted) WHERE acted IS NOT NULL;
CREATE INDEX effects_call ON effects (tenant, call);
CREATE INDEX effects_key ON effects (tenant, key) WHERE key <> '';
CREATE TABLE items ( -- what was said
	id INTEGER PRIMARY KEY, -- at, with a number in place of the bits of withinUnit
	agent INTEGER NOT NULL, n INTEGER NOT NULL,
	tenant TEXT NOT NULL, at INTEGER NOT NULL, what TEXT NOT NULL, turn TEXT NOT NULL,
	input TEXT NOT NULL, -- the id of an input
	text TEXT NOT NULL);
CREATE INDEX items_agent ON items (agent);
CREATE INDEX items_input ON items (tenant, input) WHERE input <> '';
CREATE VIRTUAL TABLE words USING fts5 (text, tenant, content = 'items', content_rowid = 'id', columnsize = 0, tokenize = 'unicode61');
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
CREATE TABLE usage (
	agent INTEGER NOT NULL, model TEXT NOT NULL, hour INTEGER NOT NULL,
	calls INTEGER NOT NULL, failed INTEGER NOT NULL, lost INTEGER NOT NULL,
	input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL, reasoning INTEGER NOT NULL, cost INTEGER NOT NULL,
	PRIMARY KEY (agent, model, hour)) WITHOUT ROWID;
CREATE TABLE hours ( -- the same, summed over the agents of a shard
	tenant TEXT NOT NULL, hour INTEGER NOT NULL, kind TEXT NOT NULL, model TEXT NOT NULL, shard INTEGER NOT NULL,
	calls INTEGER NOT NULL, failed INTEGER NOT NULL, lost INTEGER NOT NULL,
	input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL, reasoning INTEGER NOT NULL, cost INTEGER NOT NULL,
	PRIMARY KEY (tenant, hour, kind, model, shard)) WITHOUT ROWID;
`

// Store is an open file. Queries are safe for concurrent use, also beside the
// one goroutine that may apply batches.
type Store struct {
	path   string
	logger *slog.Logger
	write  *sql.DB
	read   *sql.DB
	find   *sql.Stmt                     // of write: an agent
	shards map[int]Shard                 // as committed; of the goroutine that applies
	bad    atomic.Pointer[map[badOf]int] // frames that could not be read
	// untidy reports whether what SQLite has yet to write back may hold something of a
	// deleted agent.
	untidy bool
	// lock is held for as long as the file is open; nil: it is in memory.
	lock *flock.Flock
	// damaged is closed once a query has met damage, which damage then is.
	damaged chan struct{}
	once    sync.Once
	damage  error
}

// Open opens the file, or makes it. One that is damaged, or of another version,
// is dropped with a warning. One that another Store has open, of any
// process, is refused and left alone. The folder must exist. Without a path
// the index is in memory and gone when the store is closed; queries then wait
// for a batch that is being applied.
func Open(ctx context.Context, path string, logger *slog.Logger) (_ *Store, err error) {
	s := &Store{path: path, logger: logger, damaged: make(chan struct{})}
	if path != "" {
		if s.lock, err = hold(path); err != nil {
			return nil, err
		}
	}
	if err := s.openOrMake(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openOrMake opens the file, or makes it again.
func (s *Store) openOrMake(ctx context.Context) error {
	err := s.open(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	s.logger.Warn("the index is dropped and built again from the log", "file", s.path, "reason", err)
	if err := remove(s.path); err != nil {
		return err
	}
	return s.open(ctx)
}

// readers is how many queries run at the same time.
const readers = 4

func (s *Store) open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			_ = s.shut()
		}
	}()
	if s.write, err = sql.Open("sqlite", s.url("_txlock=immediate", "_pragma=journal_mode(WAL)", "_pragma=synchronous(NORMAL)", "_pragma=secure_delete(1)")); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if s.find, err = s.write.PrepareContext(ctx, `SELECT id, last, bad, forked, encrypted, carry FROM agents WHERE tenant = ? AND kind = ? AND key = ?`); err != nil {
		return err
	}
	if s.path == "" { // what is in memory belongs to one connection
		s.read = s.write
		return s.load(ctx)
	}
	if s.read, err = sql.Open("sqlite", s.url("_pragma=query_only(1)")); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(readers)
	return s.load(ctx)
}

// cacheSize is how much each connection keeps of the file: 8 MiB.
const cacheSize = "-8192"

// claim comes before a query, and frees cacheSize for its connection. In this build of SQLite the
// caches of a process share one bound, and a cache that is full takes pages of the others. One that
// lost its pages cannot get them back within the bound, and drops each page after use.
const claim = `PRAGMA cache_size = 0; PRAGMA cache_size = ` + cacheSize + `; `

func (s *Store) url(options ...string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(s.path)}).EscapedPath()}
	if s.path == "" {
		u.Opaque = ":memory:"
	}
	u.RawQuery = "_pragma=busy_timeout(5000)&_pragma=temp_store(MEMORY)&_pragma=cache_size(" + cacheSize + ")"
	for _, o := range options {
		u.RawQuery += "&" + o
	}
	return u.String()
}

// prepare makes the tables of a new file and looks through those of an old one.
func (s *Store) prepare(ctx context.Context) error {
	var found, tables int
	if err := s.write.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`).Scan(&found, &tables); err != nil {
		return err
	}
	switch {
	case tables == 0:
		_, err := s.write.ExecContext(ctx, fmt.Sprintf(`BEGIN IMMEDIATE; %s PRAGMA user_version = %d; COMMIT`, schema, version))
		return err
	case found != version:
		return fmt.Errorf("it has version %d, this program makes version %d", found, version)
	}
	return s.check(ctx)
}

// check looks through the tables of the file, except what FTS5 makes of its own: that is read
// whole in a check, and its damage is found by the queries that meet it. With sqlite_schema, SQLite
// checks the list of free pages, too: a wrong one would have it write over pages that are in use.
func (s *Store) check(ctx context.Context) error {
	var tables []string
	err := each(ctx, s.write, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		tables = append(tables, name)
		return err
	}, `SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 UNION ALL SELECT 'sqlite_schema'`)
	for _, name := range tables {
		if err != nil {
			return err
		}
		var verdict string
		if err = s.write.QueryRowContext(ctx, `SELECT quick_check FROM pragma_quick_check(?)`, name).Scan(&verdict); err == nil && verdict != "ok" {
			err = fmt.Errorf("it is damaged: %s", verdict)
		}
	}
	return err
}

// load reads the positions and what could not be read, and tidies up.
func (s *Store) load(ctx context.Context) (err error) {
	if s.shards, err = s.positions(ctx); err != nil {
		return err
	}
	bad, err := count(ctx, s.read)
	if err != nil {
		return err
	}
	s.bad.Store(bad)
	s.untidy = true // the process that wrote it may have been killed
	return s.tidy(ctx)
}

// tidy has SQLite write back what it has yet to, and empty the file that holds it,
// if something of a deleted agent may be in there. A running query may block it;
// then the next commit does it.
func (s *Store) tidy(ctx context.Context) error {
	if !s.untidy {
		return nil
	}
	var busy, pages, written int
	err := s.write.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &written)
	s.untidy = err != nil || busy != 0
	return err
}

// Close closes the file. Queries under way fail.
func (s *Store) Close() error {
	err := s.shut()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Unlock())
	}
	return err
}

// shut closes the file and keeps the lock.
func (s *Store) shut() (err error) {
	if s.read != nil && s.read != s.write {
		err = s.read.Close()
	}
	if s.write != nil {
		err = errors.Join(err, s.write.Close())
	}
	return err
}

// met returns the error of a query. If that is damage it logs it, and closes damaged.
func (s *Store) met(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if Damaged(err) {
		s.once.Do(func() {
			s.logger.Error("a query of the index has met damage", "file", s.path, "error", err)
			s.damage = err
			close(s.damaged)
		})
	}
	return err
}

// Broken is closed once a query has met damage: the store must be closed, and its
// file removed.
func (s *Store) Broken() <-chan struct{} { return s.damaged }

// Damage is what a query has met, once Broken is closed.
func (s *Store) Damage() error {
	<-s.damaged
	return s.damage
}

// Path is where the file is; empty if there is none.
func (s *Store) Path() string { return s.path }

// Damaged reports whether an error of a Store means that its file cannot be trusted
// and must be removed.
func Damaged(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqliteError, sqliteCorrupt, sqliteFormat, sqliteNotADB:
			return true
		}
		return e.Code() == sqliteShortRead
	}
	return errors.Is(err, errStrange)
}

// Result codes of SQLite. Because all statements are our own, a general error means that
// the tables are not.
const (
	sqliteError   = 1
	sqliteCorrupt = 11
	sqliteFormat  = 24
	sqliteNotADB  = 26
	// sqliteShortRead is an extended code: the file is shorter than it should be.
	sqliteShortRead = 10 | 2<<8
)

// errStrange is the error of a file that holds what this program did not write.
var errStrange = errors.New("it holds what this program did not write")
