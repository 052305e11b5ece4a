//go:build unix

package chaos

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// work continues the turn of a branch, and sends it inputs.
func (f *forker) work(b *branch) error {
	var commands []messages.Command
	if f.random.IntN(2) == 0 {
		commands = append(commands, messages.UseTools{ID: b.agent + "-tools"})
	}
	commands = append(commands, messages.Resume{ID: b.agent + "-resume"})
	for _, c := range commands {
		if _, err := f.w.insist(func(d *endpoint) error { return patient(d, b.agent, c) }); err != nil {
			return err
		}
	}
	f.say(b)
	return nil
}

// say sends inputs to a branch. What the first one says was said to its source, if something was since, so
// that dry calls have results on record.
func (f *forker) say(b *branch) {
	for i := range 1 + f.random.IntN(2) {
		s := &sent{Agent: b.agent, Publisher: f.name, Command: "input", Policy: messages.PolicyQueue, Plan: drawPlan(f.random)}
		f.number++
		s.Number, s.ID = f.number, fmt.Sprintf("%s-%d", f.name, f.number)
		if before := f.w.book.later(b); before != nil && i == 0 {
			s.Plan, s.Said = before.Plan, cmp.Or(before.Said, before.ID)
		}
		f.w.book.Write(func() { f.w.book.sent[s.ID] = s })
		life, err := f.w.insist(func(d *endpoint) error { return f.send(d, s, f.prompt) })
		f.settle(s, life, err)
	}
}

// later is an input that the source of a branch has taken since, and that was not said to the branch yet: the
// effects of two inputs with one text would be counted as those of one.
func (b *book) later(of *branch) *sent {
	b.Lock()
	defer b.Unlock()
	said := make(map[string]bool)
	for _, s := range b.sent {
		if s.Agent == of.agent {
			said[cmp.Or(s.Said, s.ID)] = true
		}
	}
	for n, ev := range b.shown[of.source] {
		s := b.sent[field(ev).Input]
		if n > of.at && ev.Type == "input.accepted" && s != nil && !said[cmp.Or(s.Said, s.ID)] {
			return s
		}
	}
	return nil
}

// clear clears a branch. What a fork began with stays: its parent's history, without the turn that ran then. An
// imported agent begins with nothing.
func (f *forker) clear(b *branch) error {
	f.number++
	id := fmt.Sprintf("%s-%d", f.name, f.number)
	if _, err := f.w.insist(func(d *endpoint) error { return patient(d, b.agent, messages.Clear{ID: id, Reason: id}) }); err != nil {
		return err
	}
	baseline := []projections.HistoryItem(nil)
	if !b.imported {
		baseline = f.history(b.agent, b.at)
	}
	if is := f.history(b.agent, 0); !reflect.DeepEqual(is, baseline) && (b.imported || !b.inside) {
		return fmt.Errorf("%s was cleared, and its history is\n%+v\nwhere it began with\n%+v", b.agent, is, baseline)
	}
	return nil
}

// detach forks a branch at its newest event, and deletes it once its forks have copied its events. What
// begins with these reads as before, and works on.
func (f *forker) detach(b *branch) error {
	if err := f.branchOff(&branch{source: b.agent}, f.fork); err != nil {
		return err
	}
	left := f.below(b)[1:]
	for _, one := range left {
		log, err := f.log(one)
		if err != nil {
			return err
		}
		f.w.book.Write(func() { one.before, one.detached = log, one.detached || one.source == b.agent })
	}
	if err := f.delete(b, "--detach"); err != nil {
		return err
	}
	for _, one := range left {
		log, err := f.log(one)
		if err != nil {
			return err
		}
		if v := one.changed(log); v != nil {
			return fmt.Errorf("%v", v)
		}
		f.say(one)
	}
	return nil
}

// delete deletes a branch with its forks (--cascade), or without them once they have copied its events
// (--detach). Without either it is refused.
func (f *forker) delete(b *branch, how string) error {
	all := f.below(b)
	held := len(all) > 1
	if how == "--detach" {
		all = all[:1]
	}
	f.number++
	for _, one := range all {
		one.cancel()
		f.w.book.remove(one, fmt.Sprintf("%s-%d-%s", f.name, f.number, one.agent))
	}
	f.made = slices.DeleteFunc(f.made, func(one *branch) bool { return one.gone })
	_, err := f.w.insist(func(d *endpoint) error {
		_, err := d.client.Do(d.ctx, b.agent, messages.Delete{ID: fmt.Sprintf("%s-%d", f.name, f.number)})
		return err
	})
	if held == (err == nil) || err != nil && messages.AsError(err).Code != messages.Conflict {
		return fmt.Errorf("delete of %s, which has forks (%t): %v", b.agent, held, err)
	}
	if err == nil {
		return nil
	}
	_, err = f.w.insist(func(d *endpoint) error {
		_, err := f.once(d, "delete", b.agent, how, "--yes")
		if s, unseen := d.client.Show(d.ctx, b.agent); unseen == nil && s.Deleted != nil {
			return nil // by a run that was killed before it could report it, perhaps
		}
		return err
	})
	return err
}

// remove enters that a branch is deleted, by a command with this id. Nothing is owed by it any more.
func (b *book) remove(of *branch, id string) {
	b.Write(func() {
		of.gone = true
		for _, s := range b.sent {
			if s.Agent == of.agent {
				s.Life = 0
				delete(b.open, s.ID)
			}
		}
		b.sent[id] = &sent{ID: id, Agent: of.agent, Command: "delete"}
	})
}

// below are a branch and those that begin with its events by being forks of it.
func (f *forker) below(b *branch) []*branch {
	all := []*branch{b}
	for _, one := range f.made {
		if one.source == b.agent && !one.imported {
			all = append(all, f.below(one)...)
		}
	}
	return all
}
