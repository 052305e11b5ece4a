package index

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
)

// Damage to any page of a file is found when it is opened: it is built again. What an unused page
// holds is no matter, but which are unused is.
func TestEachDamagedPageIsFound(t *testing.T) { // A87
	w, path := newLogWriter(7), file(t)
	w.appendTurns(20, 150)
	s := open(t, path)
	w.apply(t, s, 50)
	if _, err := s.write.Exec(`CREATE TABLE dropped (b); INSERT INTO dropped VALUES (zeroblob(40000)); DROP TABLE dropped`); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	unused := unusedPages(whole, page)
	if len(unused) == 0 {
		t.Fatal("the file has no unused pages")
	}
	for at := page; at < len(whole); at += page {
		if unused[at/page+1] {
			continue
		}
		damaged := bytes.Clone(whole)
		for i := range damaged[at : at+64] {
			damaged[at+i] ^= 0xff
		}
		write(t, path, damaged)
		s := open(t, path)
		for shard := range w.shards {
			if seq := s.Shard(shard).Seq; seq != 0 {
				t.Errorf("page %d damaged: got position %d of shard %d, want 0", at/page, seq, shard)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// unusedPages returns the numbers of the pages that a list of unused ones names; the first page is 1. The pages
// with the list are not among them. The format is in section 1.5 of sqlite.org/fileformat2.html.
func unusedPages(file []byte, page int) map[int]bool {
	number := func(at int) int { return int(binary.BigEndian.Uint32(file[at:])) }
	unused := make(map[int]bool)
	for list := number(32); list != 0; list = number((list - 1) * page) {
		for i := range number((list-1)*page + 4) {
			unused[number((list-1)*page+8+4*i)] = true
		}
	}
	return unused
}
