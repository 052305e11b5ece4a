package actors

import (
	"container/list"
	"sync"

	"github.com/reprise-dev/reprise/messages"
)

// cacheSize is how many bytes of the blobs that models are shown stay in memory.
const cacheSize = 64 << 20

// cache keeps the texts that were used last, as many as fit into cacheSize. The
// zero value is ready. Safe for concurrent use.
type cache struct {
	mu    sync.Mutex
	size  int
	order list.List // of *shownText, the newest first
	texts map[shownKey]*list.Element
}

type shownKey struct {
	agent messages.AgentID
	hash  messages.Digest
	most  int
}

type shownText struct {
	key  shownKey
	text string
}

func (c *cache) get(key shownKey) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.texts[key]
	if e == nil {
		return "", false
	}
	c.order.MoveToFront(e)
	return e.Value.(*shownText).text, true
}

// put keeps a text, unless it would take more than a quarter of the room.
func (c *cache) put(key shownKey, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(text) > cacheSize/4 || c.texts[key] != nil {
		return
	}
	if c.texts == nil {
		c.texts = make(map[shownKey]*list.Element)
	}
	c.texts[key] = c.order.PushFront(&shownText{key, text})
	for c.size += len(text); c.size > cacheSize; {
		oldest := c.order.Remove(c.order.Back()).(*shownText)
		delete(c.texts, oldest.key)
		c.size -= len(oldest.text)
	}
}
