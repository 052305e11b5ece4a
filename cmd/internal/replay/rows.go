package replay

import (
	"cmp"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// rows are rows of a timeline in the order of their events. The zero value has none.
type rows struct {
	all []*projections.Row
	// filter is what shown rows have in common. Empty: all are shown.
	filter string
	shown  []*projections.Row
	turns  map[messages.TurnID]*projections.Row
}

// add takes over rows that are new or have changed, and returns how many are newer than all
// others.
func (r *rows) add(batch []projections.Row) (added int) {
	var older []*projections.Row
	for i := range batch { // the rows are kept
		row := &batch[i]
		at, found := r.place(row.N)
		switch {
		case found:
			r.replace(r.all[at], row)
			row = r.all[at]
		case at == len(r.all):
			r.all = append(r.all, row)
			added++
		default:
			older = append(older, row)
		}
		if row.Kind == projections.RowTurn {
			r.turn(row)
		}
	}
	if r.insert(older); len(older) > 0 || r.filter == "" {
		r.apply(r.filter)
		return added
	}
	for _, row := range batch {
		r.refilter(row.N)
	}
	return added
}

// refilter shows the row of an event, or does so no longer, as it now matches the filter.
func (r *rows) refilter(n messages.EventNumber) {
	of, _ := r.place(n)
	at, shown := place(r.shown, n)
	switch fits := matches(r.all[of], r.filter); {
	case fits && !shown:
		r.shown = slices.Insert(r.shown, at, r.all[of])
	case shown && !fits:
		r.shown = slices.Delete(r.shown, at, at+1)
	}
}

// turn keeps the row of a turn.
func (r *rows) turn(row *projections.Row) {
	if r.turns == nil {
		r.turns = make(map[messages.TurnID]*projections.Row)
	}
	r.turns[row.Turn] = row
}

// place returns where the row of an event is, or would be.
func (r *rows) place(n messages.EventNumber) (at int, found bool) { return place(r.all, n) }

func place(list []*projections.Row, n messages.EventNumber) (at int, found bool) {
	return slices.BinarySearchFunc(list, n, func(row *projections.Row, n messages.EventNumber) int { return cmp.Compare(row.N, n) })
}

// replace changes a row into a newer form of it.
func (r *rows) replace(old, row *projections.Row) {
	if row.Last() >= old.Last() {
		*old = *row
	}
}

// insert adds rows that others are newer than.
func (r *rows) insert(older []*projections.Row) {
	if len(older) == 0 {
		return
	}
	slices.SortStableFunc(older, func(a, b *projections.Row) int { return cmp.Compare(a.N, b.N) })
	merged := make([]*projections.Row, 0, len(r.all)+len(older))
	for i := 0; len(older) > 0; {
		switch row := older[0]; {
		case i < len(r.all) && r.all[i].N < row.N:
			merged = append(merged, r.all[i])
			i++
			continue
		case len(merged) > 0 && merged[len(merged)-1].N == row.N: // it came more than once
			r.replace(merged[len(merged)-1], row)
		default:
			merged = append(merged, row)
		}
		if older = older[1:]; len(older) == 0 {
			merged = append(merged, r.all[i:]...)
		}
	}
	r.all = merged
}

// apply shows the rows that match a filter.
func (r *rows) apply(filter string) {
	if r.filter, r.shown = filter, r.all; filter == "" {
		return
	}
	r.shown = nil
	for _, row := range r.all {
		if matches(row, filter) {
			r.shown = append(r.shown, row)
		}
	}
}

// matches reports whether a row has all words of a text, in whatever case.
func matches(row *projections.Row, text string) bool {
	parts := []string{string(row.Kind), row.Title, row.Status, row.Text, string(row.Turn), string(row.Call), row.Node}
	if row.Person != nil {
		parts = append(parts, row.Person.Name)
	}
	all := strings.ToLower(strings.Join(parts, "\n"))
	for _, word := range strings.Fields(strings.ToLower(text)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}

// newest returns the newest event of all rows; 0: there is none.
func (r *rows) newest() (n messages.EventNumber) {
	for _, row := range r.all {
		n = max(n, row.Last())
	}
	return n
}

// near returns the shown row that an event is part of, or the one that begins last before it; -1
// if there is none.
func (r *rows) near(n messages.EventNumber) int {
	at, found := place(r.shown, n)
	if found {
		return at
	}
	for i := at - 1; i >= 0; i-- {
		if slices.Contains(r.shown[i].Events, n) {
			return i
		}
	}
	return at - 1
}

// next returns the first shown row behind one that is chosen, or before it if step is -1; at
// itself if there is none. It begins again at the other end if around is set.
func (r *rows) next(at, step int, around bool, chosen func(*projections.Row) bool) int {
	n := len(r.shown)
	for i, k := at+step, 0; k < n; i, k = i+step, k+1 {
		if around && n > 0 {
			i = (i + n) % n
		}
		if i < 0 || i >= n {
			break
		}
		if chosen(r.shown[i]) {
			return i
		}
	}
	return at
}
