//go:build unix

package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// decide is a person who decides on the calls that wait for them. A decision that is
// refused came too late: the turn has ended. One person approves, and another looks up
// unknown outcomes.
func (w *world) decide(doubts bool) {
	stream := uint64(1 << 32)
	if doubts {
		stream = 1 << 33
	}
	r := rand.New(rand.NewPCG(*seed, stream))
	b := w.book
	settled := make(map[string]bool)
	mine := func(c waitingCall) bool { return c.doubtful() == doubts }
	for b.Until(w.ctx, nil, func() bool { return slices.ContainsFunc(b.waiting, mine) }) {
		var c waitingCall
		b.Write(func() {
			i := slices.IndexFunc(b.waiting, mine)
			c = b.waiting[i]
			b.waiting = slices.Delete(b.waiting, i, i+1)
		})
		if c.wait != nil && (c.wait.Kind == messages.WaitPaused || !w.fresh(*c.wait, settled)) {
			continue
		}
		verdict, told, err := w.verdict(c, r)
		if err != nil {
			w.fault("%v", err)
			return
		}
		if _, err = w.insist(func(d *endpoint) error { return patient(d, c.Agent, verdict) }); err != nil {
			continue
		}
		b.Write(func() {
			b.decided = append(b.decided, decided{c.callOf, told, c.N})
		})
	}
}

// errBusy is a refusal that ends by itself.
var errBusy = errors.New("as many tools run as may at once")

// patient sends a decision to an agent. insist takes busy as final, which it is for an input that
// is not to wait; a call that may not run again yet may soon, so here it is an error to try again
// after.
func patient(d *endpoint, agent string, c messages.Command) error {
	_, err := d.client.Do(d.ctx, agent, c)
	var refused *messages.Error
	if errors.As(err, &refused) && refused.Code == messages.Busy {
		return errBusy
	}
	return err
}

// fresh reports whether a call below still waits for a decision: a list of what waits
// may be old, and names the same wait more than once.
func (w *world) fresh(wait messages.Wait, settled map[string]bool) bool {
	var newest client.Event
	_, err := w.insist(func(d *endpoint) error {
		newest = client.Event{}
		for line, err := range d.client.Query(d.ctx, wait.Agent, messages.Query{View: "events"}) {
			var e client.Event
			if err == nil {
				err = json.Unmarshal(line, &e)
			}
			if err != nil {
				return err
			}
			if e.Turn == wait.Turn && field(e).Call == wait.Call {
				newest = e
			}
		}
		return nil
	})
	name := fmt.Sprintf("%s %s %s %d", wait.Agent, wait.Turn, wait.Call, newest.N)
	if err != nil || settled[name] || newest.Type != "approval.requested" && newest.Type != "tool.unknown" {
		return false
	}
	settled[name] = true
	return true
}

// verdict is the person's decision on a call, and the event that will record it.
func (w *world) verdict(c waitingCall, r *rand.Rand) (messages.Command, string, error) {
	id := fmt.Sprintf("person-%s-%d", c.callOf.Call, c.N)
	if c.Type == "tool.unknown" {
		w.book.Lock()
		asked := field(w.book.calls[c.callOf])
		w.book.Unlock()
		return w.lookUp(messages.Decide{ID: id, Call: c.callOf.Call}, c.Agent, c.Turn, asked, r)
	}
	call, of, hash, remember := c.callOf.Call, c.Turn, field(c.Event).ArgsHash, r.IntN(20) == 0
	told := []string{"approval.denied", "approval.granted"}
	if wait := c.wait; wait != nil {
		id += "-" + string(wait.Call)
		if wait.Kind == messages.WaitUnknown {
			d, _, err := w.lookUp(messages.Decide{ID: id, Call: wait.Call, Turn: wait.Turn}, wait.Agent, wait.Turn, fields{Tool: wait.Tool, Arguments: wait.Arguments}, r)
			return d, "child.decided", err
		}
		call, of, hash, remember, told = wait.Call, wait.Turn, wait.ArgsHash, false, []string{"child.decided", "child.decided"}
	}
	if r.IntN(4) == 0 {
		text := "denied"
		return messages.Deny{ID: id, Call: call, Turn: of, ArgsHash: hash, Text: &text}, told[0], nil
	}
	return messages.Approve{ID: id, Call: call, Turn: of, ArgsHash: hash, Remember: remember}, told[1], nil
}

// lookUp waits until no program of an earlier life is left and says of a call
// whose outcome is unknown what the ledger has.
func (w *world) lookUp(d messages.Decide, agent string, of messages.TurnID, asked fields, r *rand.Rand) (messages.Command, string, error) {
	d.Outcome = messages.OutcomeCompleted
	key := strings.Join([]string{agent, string(of), string(d.Call)}, "/")
	if err := w.system.calm(w.ctx, key); err != nil {
		return d, "", err
	}
	var want entry
	if err := json.Unmarshal([]byte(asked.Arguments), &want); err != nil {
		return d, "", fmt.Errorf("call %s of %s: %w", d.Call, agent, err)
	}
	lines, err := os.ReadFile(w.ledger())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return d, "", err
	}
	if done, ok := effectOf(lines, asked.Tool, key); ok && done.Input == want.Input && done.Position == want.Position {
		d.Result = done.result()
		return d, "tool.completed", nil
	}
	if r.IntN(2) == 0 {
		d.Outcome = messages.OutcomeRetry
		return d, "tool.started", nil
	}
	d.Outcome = messages.OutcomeFailed
	return d, "tool.failed", nil
}
