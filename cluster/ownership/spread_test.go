package ownership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// shares counts what each has.
func shares(t table) map[string]int {
	n := make(map[string]int)
	for _, m := range t {
		n[m]++
	}
	return n
}

// moves is how many partitions that a living member had are to be another's.
func moves(now, next table, members []string) (n int) {
	for p, m := range now {
		if m != next[p] && slices.Contains(members, m) {
			n++
		}
	}
	return n
}

// fewest is the least number of moves with which shares become even.
func fewest(now table, members []string) (n int) {
	has, least, more := shares(now), messages.Partitions/len(members), messages.Partitions%len(members)
	for _, m := range members {
		over := has[m] - least
		if over > 0 && more > 0 {
			over, more = over-1, more-1
		}
		n += max(over, 0)
	}
	return n
}

// follow carries a plan out one partition after another, in any order.
func follow(t *testing.T, r *rand.Rand, now table, members []string) table {
	t.Helper()
	next := spread(now, members)
	for _, p := range r.Perm(messages.Partitions) {
		if now[p] = next[p]; spread(now, members) != next {
			t.Fatalf("the plan changes as it is carried out, at partition %d:\n%v\n%v", p, next, spread(now, members))
		}
	}
	return now
}

func checkPlan(t *testing.T, r *rand.Rand, now table, members []string) table {
	t.Helper()
	next := spread(now, members)
	mixed := slices.Clone(members)
	r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	if spread(now, mixed) != next {
		t.Fatalf("the order of the members matters: %v", members)
	}
	has := shares(next)
	for _, m := range members {
		if least := messages.Partitions / len(members); has[m] < least || has[m] > least+1 || has[m] == least+1 && messages.Partitions%len(members) == 0 {
			t.Fatalf("%s gets %d of 64, with %d members", m, has[m], len(members))
		}
		delete(has, m)
	}
	if len(has) > 0 {
		t.Fatalf("others have some: %v", has)
	}
	if got, want := moves(now, next, members), fewest(now, members); got != want {
		t.Fatalf("%d moves, %d would do", got, want)
	}
	return next
}

// checkWay is checkPlan that also goes the plan's way, in small steps.
func checkWay(t *testing.T, r *rand.Rand, now table, members []string) table {
	t.Helper()
	checkPlan(t, r, now, members)
	return follow(t, r, now, members)
}

func members(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("member-%d", i)
	}
	return list
}

// Members come and go, one or several at a time; each time the shares become even,
// with as few moves as can be.
func FuzzPlan(f *testing.F) {
	f.Add(uint64(1), []byte{1, 2, 3, 2, 1, 5})
	f.Add(uint64(2), []byte{64, 63, 65})
	f.Add(uint64(3), []byte{3, 0, 3, 7})
	f.Fuzz(func(t *testing.T, seed uint64, sizes []byte) {
		r := rand.New(rand.NewPCG(seed, 0))
		var now table
		for i, size := range sizes[:min(len(sizes), 6)] {
			all, check := members(20), checkPlan
			if seed%32 == 2 && i < 3 { // they take long
				all, check = members(80), checkWay
			}
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			there := all[:int(size)%len(all)]
			if len(there) == 0 {
				if spread(now, nil) != now {
					t.Fatal("a plan without members moves something")
				}
				continue
			}
			now = check(t, r, now, there)
		}
	})
}

// A join takes from the others what it is to have, and nothing else moves; a leave
// spreads what the leaver had.
func TestPlanJoinLeave(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	now := checkWay(t, r, table{}, members(1))
	for n := 2; n <= messages.Partitions; n++ {
		next := checkWay(t, r, now, members(n))
		if got, want := moves(now, next, members(n)), messages.Partitions/n; got != want {
			t.Errorf("the join of member %d moves %d partitions, not %d", n, got, want)
		}
		now = next
	}
	for n := 8; n > 1; n-- {
		now = checkWay(t, r, now, members(n))
		if left := checkWay(t, r, now, members(n-1)); moves(now, left, members(n-1)) != 0 {
			t.Errorf("when one of %d leaves, partitions of those who stay move", n)
		}
	}
}
