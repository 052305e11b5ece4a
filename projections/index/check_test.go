package index

import (
	"bytes"
	"os"
	"testing"
)

// Damage to any page of a file is found when it is opened: it is built again.
func TestEachDamagedPageIsFound(t *testing.T) { // A87
	w, path := newLogWriter(7), file(t)
	w.appendTurns(20, 150)
	s := open(t, path)
	w.apply(t, s, 50)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for at := page; at < len(whole); at += page {
		damaged := bytes.Clone(whole)
		clear(damaged[at : at+64])
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
