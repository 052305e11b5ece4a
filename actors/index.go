package actors

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// index remembers every command id that an agent ever spent, but for the
// newest, which the state keeps as they are. It is asked only when the state does
// not know an id. What it holds does not grow with the number of ids but for two
// bytes each: full pages are kept beside the snapshot, once each, and read when
// their filter does not rule the id out. All of it can be made anew from the log.
// The zero value is empty.
type index struct {
	pages []idPage // full ones, oldest first
	page  idList   // the one that is being filled
	// newest are the places of frames that spent ids which the state still holds.
	newest []place
	// read are pages that were read from the store, newest last.
	read []int
}

// place is where a frame stands that spent an id: the event that tells of it,
// and the log's sequence, which is a hint.
type place struct {
	n   messages.EventNumber
	seq uint64
}

// idPage is a full page.
type idPage struct {
	filter idFilter
	sum    [sha256.Size]byte // of the ids, as they are stored
	ids    idList            // nil: only the store has them
	stored bool
}

// pageIDs is how many ids a full page has.
var pageIDs = 1024 // smaller in tests

// pagesRead is how many pages an activation keeps of those it has read.
const pagesRead = 8

// idList is ids with their places, in the order in which they came: for each the
// first half of its SHA-256, then event number and sequence, 8 bytes each.
type idList []byte

const idSize = 32

func hashID(id string) [16]byte {
	sum := sha256.Sum256([]byte(id))
	return [16]byte(sum[:])
}

func (l *idList) add(hash [16]byte, at place) {
	*l = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(append(*l, hash[:]...), uint64(at.n)), at.seq)
}

func (l idList) find(hash [16]byte) (place, bool) {
	for i := len(l) - idSize; i >= 0; i -= idSize {
		if [16]byte(l[i:]) == hash {
			return place{messages.EventNumber(binary.BigEndian.Uint64(l[i+16:])), binary.BigEndian.Uint64(l[i+24:])}, true
		}
	}
	return place{}, false
}

// idFilter is a Bloom filter (Bloom 1970) over the ids of a page, with 16 bits
// and 8 probes for each, so that one page in 1,700 is read in vain. The probes
// are made of two halves of the hash (Kirsch and Mitzenmacher 2006).
type idFilter []byte

const filterProbes = 8

func filterBytes() int { return pageIDs * 2 }

func newFilter(l idList) idFilter {
	f := make(idFilter, filterBytes())
	for ; len(l) > 0; l = l[idSize:] {
		f.probe([16]byte(l), func(b *byte, bit byte) bool { *b |= bit; return true })
	}
	return f
}

// maybe says whether the page may hold the id; false is certain.
func (f idFilter) maybe(hash [16]byte) bool {
	return f.probe(hash, func(b *byte, bit byte) bool { return *b&bit != 0 })
}

// probe visits the bits of a hash until see says false.
func (f idFilter) probe(hash [16]byte, see func(b *byte, bit byte) bool) bool {
	at, step := binary.BigEndian.Uint64(hash[:]), binary.BigEndian.Uint64(hash[8:])|1
	for range filterProbes {
		i := at % uint64(len(f)*8)
		if !see(&f[i/8], 1<<(i%8)) {
			return false
		}
		at += step
	}
	return true
}

// fold notes what a frame has pushed out of the state. Behind a tombstone all ids
// are free again.
func (x *index) fold(f *messages.Frame, evicted turn.SpentID) {
	if deletes(f) {
		*x = index{}
	}
	x.spent(evicted)
}

// spent notes an id that the state holds no more.
func (x *index) spent(id turn.SpentID) {
	if id.ID == "" {
		return
	}
	at := place{n: id.N}
	if i := slices.IndexFunc(x.newest, func(p place) bool { return p.n == id.N }); i >= 0 {
		at = x.newest[i]
		x.newest = slices.Delete(x.newest, 0, i+1)
	}
	if x.page == nil {
		x.page = make(idList, 0, idSize*16)
	}
	x.page.add(hashID(id.ID), at)
	if len(x.page) == pageIDs*idSize {
		x.pages = append(x.pages, idPage{filter: newFilter(x.page), sum: sha256.Sum256(x.page), ids: x.page})
		x.page = nil
	}
}

// placed notes where a frame stands that has spent an id.
func (x *index) placed(f *messages.Frame, seq uint64) {
	if id, ok := turn.SpentBy(f); ok {
		x.newest = append(x.newest, place{id.N, seq})
	}
}

// pageRef names a full page and what it must hold.
type pageRef struct {
	number int
	sum    [sha256.Size]byte
}

// find says where an id was spent. unread are the pages that must be read before
// that is known, newest first.
func (x *index) find(hash [16]byte) (at place, found bool, unread []pageRef) {
	if at, found = x.page.find(hash); found {
		return at, true, nil
	}
	for i := len(x.pages) - 1; i >= 0; i-- {
		switch p := &x.pages[i]; {
		case !p.filter.maybe(hash):
		case p.ids == nil:
			unread = append(unread, pageRef{i, p.sum})
		case !found:
			at, found = p.ids.find(hash)
		}
	}
	return at, found, unread
}

// recent is where the frame stands that spent, at event n, one of the newest ids.
func (x *index) recent(n messages.EventNumber) place {
	for _, p := range x.newest {
		if p.n == n {
			return p
		}
	}
	return place{n: n}
}

// keep keeps a page that was read, and lets go of the one that was read longest
// ago.
func (x *index) keep(i int, ids idList) {
	if x.pages[i].ids != nil {
		return
	}
	x.pages[i].ids = ids
	if x.read = append(x.read, i); len(x.read) > pagesRead {
		x.pages[x.read[0]].ids = nil
		x.read = slices.Delete(x.read, 0, 1)
	}
}

// unstored are the pages that no snapshot may count on yet.
func (x *index) unstored() []int {
	var list []int
	for i := range x.pages {
		if !x.pages[i].stored {
			list = append(list, i)
		}
	}
	return list
}

// isStored notes that the store has these pages now; they need not be in memory.
// Those of an agent that was deleted meanwhile are none any more.
func (x *index) isStored(pages []int) {
	for _, i := range pages {
		if i < len(x.pages) {
			x.pages[i].stored, x.pages[i].ids = true, nil
		}
	}
}

// storedIndex is an index in a snapshot, without the ids of its full pages.
type storedIndex struct {
	Filters [][]byte `json:"filters"`
	Sums    [][]byte `json:"sums"`
	Page    []byte   `json:"page"`
	Newest  []uint64 `json:"newest"` // event number and sequence in turn
}

// store gives the index for a snapshot; it shares what does not change.
func (x *index) store() storedIndex {
	s := storedIndex{Page: slices.Clip(x.page)}
	for i := range x.pages {
		s.Filters = append(s.Filters, x.pages[i].filter)
		s.Sums = append(s.Sums, x.pages[i].sum[:])
	}
	for _, p := range x.newest {
		s.Newest = append(s.Newest, uint64(p.n), p.seq)
	}
	return s
}

var errIndex = errors.New("the snapshot holds no index of ids")

// restore is the index that was stored.
func (s *storedIndex) restore() (index, error) {
	x := index{page: s.Page}
	if len(s.Filters) != len(s.Sums) || len(s.Page)%idSize != 0 || len(s.Page) >= pageIDs*idSize || len(s.Newest)%2 != 0 {
		return index{}, errIndex
	}
	for i, filter := range s.Filters {
		if len(filter) != filterBytes() || len(s.Sums[i]) != sha256.Size {
			return index{}, errIndex
		}
		x.pages = append(x.pages, idPage{filter: filter, sum: [sha256.Size]byte(s.Sums[i]), stored: true})
	}
	for i := 0; i < len(s.Newest); i += 2 {
		x.newest = append(x.newest, place{messages.EventNumber(s.Newest[i]), s.Newest[i+1]})
	}
	return x, nil
}

// storedPage is a full page as an object of its own.
type storedPage struct {
	IDs []byte `json:"ids"`
}

// pageName is what page i is kept under. Its content follows from the log alone.
func pageName(i int) string { return fmt.Sprintf("ids-%d-%d", turn.FoldVersion, i) }

// readPage reads a full page; nil if it is not there or not the one.
func (s *saves) readPage(ctx context.Context, a messages.AgentID, ref pageRef) idList {
	var p storedPage
	if _, err := s.get(ctx, a, pageName(ref.number), &p); err != nil || len(p.IDs) != pageIDs*idSize || sha256.Sum256(p.IDs) != ref.sum {
		return nil
	}
	return p.IDs
}
