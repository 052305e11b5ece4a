package actors

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/messages"
)

// lookedUp is what was found out about an id that full pages had to be read for:
// the command's own, or that of an input that it is about.
type lookedUp struct {
	of    *Deliver
	id    string
	at    place
	found bool
	pages map[int]idList // that were read
	ids   *index         // made anew, where a page was not to be had
	err   *messages.Error
}

// lookUp reads pages outside the mailbox to find out whether an id was spent long
// ago. Until that is known the command stands first in line and the
// agent is busy: no cache that was lost ever makes an id unspent.
func (a *agent) lookUp(d *Deliver, sender *actor.PID, spent string, unread []pageRef) {
	a.waiting = append([]arrival{{d, sender}}, a.waiting...)
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	a.busy, a.cancel = true, cancel
	rt, id, root, self := a.rt, a.id, a.root, a.self
	at, found, _ := a.ids.find(hashID(spent))
	go func() {
		defer cancel()
		m := lookedUp{of: d, id: spent, at: at, found: found}
		rt.lookUp(ctx, id, unread, &m)
		root.Send(self, m)
	}()
}

func (rt *Runtime) lookUp(ctx context.Context, id messages.AgentID, unread []pageRef, m *lookedUp) {
	if m.err = rt.turnToRead(ctx); m.err != nil {
		return
	}
	defer func() { <-rt.reading }()
	hash := hashID(m.id)
	m.pages = make(map[int]idList)
	for _, ref := range unread {
		ids := rt.saves.readPage(ctx, id, ref)
		if ids == nil {
			rt.lookUpInLog(ctx, id, hash, m)
			return
		}
		m.pages[ref.number] = ids
		if !m.found {
			m.at, m.found = ids.find(hash)
		}
	}
}

// lookUpInLog makes the index anew.
func (rt *Runtime) lookUpInLog(ctx context.Context, id messages.AgentID, hash [16]byte, m *lookedUp) {
	rt.logger.Debug("a page of spent ids is not to be had; the whole log is read", id.LogAttr(0))
	l, err := rt.replay(ctx, id)
	if err != nil {
		m.err = messages.Refuse(messages.Unavailable, "whether the id %q was spent cannot be read now (%v): try again with the same id", m.id, err)
		return
	}
	m.ids = &l.ids
	m.at, m.found, _ = l.ids.find(hash)
}

// lookedUp goes on with the command that an id was looked up for, unless it was
// turned away meanwhile.
func (a *agent) lookedUp(m lookedUp) {
	a.busy = false
	if m.ids != nil {
		a.ids = *m.ids
		a.unsaved.events, a.unsaved.size = a.unsaved.events+a.rt.saveEvery, 0 // its pages are to be stored again
	} else {
		for i, ids := range m.pages {
			a.ids.keep(i, ids)
		}
	}
	if len(a.waiting) > 0 && a.waiting[0].message == any(m.of) {
		arr := a.waiting[0]
		a.waiting = a.waiting[1:]
		a.asking = arr.sender
		switch {
		case a.broken != nil:
			a.answer(arr.sender, messages.Answer{Err: a.broken})
		case m.err != nil:
			a.answer(arr.sender, messages.Answer{Err: m.err})
		default:
			a.goOnWith(m, arr.sender)
		}
		a.asking = nil
	}
	a.drain()
}

// goOnWith goes on with a command now that it is known whether the id was spent.
func (a *agent) goOnWith(m lookedUp, sender *actor.PID) {
	switch {
	case m.id != m.of.Command.CommandID() && m.found:
		a.decide(m.of, sender, m.id)
	case m.id != m.of.Command.CommandID():
		a.decide(m.of, sender, "")
	case m.found:
		a.again(sender, m.of.Command, m.at)
	default:
		a.apply(m.of, sender)
	}
}
