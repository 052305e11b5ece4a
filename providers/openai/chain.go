package openai

import (
	"hash/maphash"
	"sync"
)

// chains remembers which history each stored answer ends, so that a request can name the
// answer in place of that history. Its zero value is empty; it is safe for concurrent use.
// What it has forgotten costs a request that sends the whole history.
type chains struct {
	once          sync.Once
	seed          maphash.Seed
	mu            sync.Mutex
	recent, older map[string]uint64 // by the id of an answer: the sum of the history up to its end
	refusing      sync.Map          // of models: their server does not take the name of an answer
}

// chainsKept is how many answers are remembered at least.
const chainsKept = 4096

func (c *chains) sum(history []byte) uint64 {
	c.once.Do(func() { c.seed = maphash.MakeSeed() })
	return maphash.Bytes(c.seed, history)
}

// ends reports whether history is the one that the answer ended.
func (c *chains) ends(answer string, history []byte) bool {
	c.mu.Lock()
	sum, ok := c.recent[answer]
	if !ok {
		sum, ok = c.older[answer]
	}
	c.mu.Unlock()
	return ok && sum == c.sum(history)
}

// add remembers that an answer ends history.
func (c *chains) add(answer string, history []byte) {
	sum := c.sum(history)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recent == nil || len(c.recent) >= chainsKept {
		c.older, c.recent = c.recent, make(map[string]uint64)
	}
	c.recent[answer] = sum
}

// drop forgets an answer, which the server may no longer have.
func (c *chains) drop(answer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.recent, answer)
	delete(c.older, answer)
}
