package ownership

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// table says of each partition which member has it, or is to have it; empty: none.
type table [messages.Partitions]string

// spread assigns every partition a member, evenly: each has 64/n of them, or one more. It follows
// from who has them now and from the members alone, in whatever order they are given, so that all
// nodes come to the same. As few partitions as can be change hands. Which ones, and where to, is
// by the highest random weight (Thaler and Ravishankar, "Using name-based mappings to increase
// hit rates", 1998). A plan that is carried out in part, in any order, leaves the rest of it as
// it was.
func spread(now table, members []string) table {
	members = slices.Compact(slices.Sorted(slices.Values(members)))
	if len(members) == 0 {
		return now
	}
	has := make(map[string][]messages.Partition, len(members))
	for p, m := range now {
		has[m] = append(has[m], messages.Partition(p)) // those of a member that is gone are free
	}
	var next table
	room := quotas(has, members)
	for _, m := range members {
		mine := has[m]
		if len(mine) > room[m] { // else it keeps all
			slices.SortFunc(mine, func(a, b messages.Partition) int { return cmp.Compare(weight(b, m), weight(a, m)) })
		}
		for len(mine) > 0 && room[m] > 0 {
			next[mine[0]], mine = m, mine[1:]
			room[m]--
		}
	}
	var bids []bid // of all members with room for all partitions without one, the highest first
	for p, m := range next {
		for _, to := range members {
			if m == "" && room[to] > 0 {
				bids = append(bids, bid{messages.Partition(p), to, weight(messages.Partition(p), to)})
			}
		}
	}
	slices.SortFunc(bids, func(a, b bid) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.partition, b.partition), cmp.Compare(a.member, b.member))
	})
	for _, b := range bids {
		if next[b.partition] == "" && room[b.member] > 0 {
			next[b.partition] = b.member
			room[b.member]--
		}
	}
	return next
}

// quotas is how many partitions each is to have. One more than others have those who
// have too many already, so that the fewest are moved, and then the first by id.
func quotas(has map[string][]messages.Partition, members []string) map[string]int {
	least, more := messages.Partitions/len(members), messages.Partitions%len(members)
	tooMany := func(m string) int { return min(max(len(has[m])-least, 0), 1) }
	order := slices.Clone(members)
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(tooMany(b), tooMany(a)) })
	quota := make(map[string]int, len(members))
	for i, m := range order {
		quota[m] = least
		if i < more {
			quota[m]++
		}
	}
	return quota
}

// bid is what a member weighs for a partition.
type bid struct {
	partition messages.Partition
	member    string
	weight    uint64
}

// weight is the same for everybody, and says nothing about another partition or member.
func weight(p messages.Partition, member string) uint64 {
	sum := sha256.Sum256(append([]byte{byte(p)}, member...))
	return binary.BigEndian.Uint64(sum[:8])
}
