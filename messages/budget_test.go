package messages

import "testing"

// Cached and cache-write tokens cost their own price if one is set, else that of the input.
func TestCost(t *testing.T) { // A52
	cached, cacheWrite := 0.5, 4.0
	usage := Usage{Input: 1e6, Cached: 2e5, CacheWrite: 4e5, Output: 1e5}
	for _, c := range []struct {
		price Price
		want  float64
	}{
		{Price{Input: 3, Output: 10}, 3 + 1},
		{Price{Input: 3, Output: 10, Cached: &cached}, 0.8*3 + 0.1 + 1},
		{Price{Input: 3, Output: 10, CacheWrite: &cacheWrite}, 0.6*3 + 1.6 + 1},
		{Price{Input: 3, Output: 10, Cached: &cached, CacheWrite: &cacheWrite}, 0.4*3 + 0.1 + 1.6 + 1},
	} {
		if got := c.price.Cost(usage); got != CostOf(c.want) {
			t.Errorf("cost at %+v: got %s, want %s", c.price, got, CostOf(c.want))
		}
	}
}
