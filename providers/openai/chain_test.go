package openai

import (
	"fmt"
	"testing"
)

// Old answers are forgotten, and the newest are not.
func TestChains(t *testing.T) {
	var c chains
	const all = 3*chainsKept + 10
	for i := range all {
		c.add(fmt.Sprint(i), []byte{byte(i)})
	}
	for i := all - chainsKept; i < all; i++ {
		if id := fmt.Sprint(i); !c.ends(id, []byte{byte(i)}) || c.ends(id, []byte{byte(i + 1)}) {
			t.Fatalf("answer %d is forgotten, or ends another history", i)
		}
	}
	for _, i := range []int{all - 1, all - chainsKept} { // of both maps
		id := fmt.Sprint(i)
		if c.drop(id); c.ends(id, []byte{byte(i)}) {
			t.Errorf("answer %s is remembered", id)
		}
	}
	if c.ends("0", []byte{0}) || len(c.recent)+len(c.older) > 2*chainsKept {
		t.Errorf("%d and %d answers are remembered", len(c.recent), len(c.older))
	}
}
