package actors

import (
	"sync"

	"github.com/reprise-dev/reprise/messages"
)

// cacheSize is how many bytes of the blobs that models are shown stay in memory.
const cacheSize = 64 << 20

// cache holds texts of at most cacheSize bytes together. When the next one does not fit, all are
// dropped: each is read again by the next call that shows it. The zero value is ready. Safe for
// concurrent use.
type cache struct {
	mu    sync.Mutex
	size  int
	texts map[shownKey]string
}

type shownKey struct {
	agent messages.AgentID
	hash  messages.Digest
	most  int
}

func (c *cache) get(key shownKey) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, ok := c.texts[key]
	return text, ok
}

// put holds a text, unless it takes more than a quarter of the cache.
func (c *cache) put(key shownKey, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(text) > cacheSize/4 {
		return
	}
	if c.size += len(text) - len(c.texts[key]); c.texts == nil || c.size > cacheSize {
		c.texts, c.size = make(map[shownKey]string), len(text)
	}
	c.texts[key] = text
}
