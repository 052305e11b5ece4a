package index

import (
	"database/sql"
	"testing"

	"modernc.org/sqlite"
)

// A query keeps the pages that it uses, although another connection of the process has read so much
// that it took the pages of all.
func TestQueriesKeepTheirPages(t *testing.T) {
	w := newLogWriter(3)
	w.appendTurns(20, 400)
	s := open(t, file(t))
	w.apply(t, s, 100)
	s.read.SetMaxOpenConns(1)
	missed := func() (pages int) {
		if err := first(s.Effects(t.Context(), Query{Tenant: "default"})); err != nil {
			t.Fatal(err)
		}
		conn, err := s.read.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }() // the pool has it again
		err = conn.Raw(func(c any) (err error) {
			pages, _, err = c.(sqlite.DBStatus).Status(sqlite.DBStatusCacheMiss, true)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return pages
	}
	if _, err := s.write.Exec(`CREATE TABLE filler (b); WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000) INSERT INTO filler SELECT zeroblob(3000) FROM n`); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", s.url())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()                   // it has only read
	for _, db := range []*sql.DB{s.write, s.read, other} { // each fills its cache
		var bytes int
		if err := db.QueryRow(`SELECT sum(length(hex(b))) FROM filler`).Scan(&bytes); err != nil {
			t.Fatal(err)
		}
	}
	missed()
	if again := missed(); again > 0 {
		t.Errorf("a query that is asked again reads %d pages again", again)
	}
}
