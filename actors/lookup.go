package actors

import (
	"context"

	"github.com/reprise-dev/reprise/messages"
)

// lookUp is where an id was spent long ago. It reads the pages that may hold it: no cache
// that was lost ever makes an id unspent.
func (a *agent) lookUp(id string) (at place, found bool, err error) {
	at, found, unread := a.ids.find(hashID(id))
	if len(unread) == 0 {
		return at, found, nil
	}
	ctx, cancel := context.WithTimeout(a.ctx, readLimit)
	defer cancel()
	return a.rt.lookUp(ctx, a.id, &a.ids, id, unread, func() {
		a.unsaved.events, a.unsaved.size = a.unsaved.events+a.rt.saveEvery, 0 // its pages are to be stored again
	})
}

// lookUp reads pages of an index until one holds the id. Where a page is not to be had the index
// is made anew from the log.
func (rt *Runtime) lookUp(ctx context.Context, a messages.AgentID, x *index, id string, unread []pageRef, made func()) (at place, found bool, err error) {
	if err := rt.turnToRead(ctx); err != nil {
		return place{}, false, err
	}
	defer func() { <-rt.reading }()
	hash := hashID(id)
	at, found, _ = x.find(hash)
	for _, ref := range unread {
		ids := rt.saves.readPage(ctx, a, ref)
		if ids == nil {
			rt.logger.Debug("a page of spent ids is not to be had; the whole log is read", a.LogAttr(0))
			l, err := rt.replay(ctx, a)
			if err != nil {
				return place{}, false, messages.Refuse(messages.Unavailable, "whether the id %q was spent cannot be read now (%v): try again with the same id", id, err)
			}
			*x = l.ids
			made()
			at, found, _ = x.find(hash)
			return at, found, nil
		}
		x.keep(ref.number, ids)
		if !found {
			at, found = ids.find(hash)
		}
	}
	return at, found, nil
}
