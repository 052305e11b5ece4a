//go:build unix

package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

// decide is the person: told of a call that waits for them, they say what is to
// become of it. What a decision meets that is refused is over: the turn ended.
func (w *world) decide() {
	r := rand.New(rand.NewPCG(*seed, 1<<32))
	b := w.book
	for b.until(w.ctx, nil, func() bool { return len(b.waiting) > 0 }) {
		var c waitingCall
		b.write(func() { c, b.waiting = b.waiting[0], b.waiting[1:] })
		verdict, told, err := w.verdict(c, r)
		if err != nil {
			w.fault("%v", err)
			return
		}
		if _, err = w.insist(func(l *life) error { return patient(l, c.Agent, verdict) }); err != nil {
			continue
		}
		b.write(func() {
			b.decided = append(b.decided, decided{c.callOf, told, c.N})
		})
	}
}

// errBusy is a refusal that ends by itself.
var errBusy = errors.New("as many tools run as may at once")

// patient gives a decision to an agent. insist takes busy for good, which it is
// for an input that is not to wait; a call that may not run again yet may soon,
// so here it is an error to try again after.
func patient(l *life, agent string, c messages.Command) error {
	_, err := l.client.Do(l.ctx, agent, c)
	var refused *messages.Error
	if errors.As(err, &refused) && refused.Code == messages.Busy {
		return errBusy
	}
	return err
}

// verdict is what the person says of a call, and the event that will tell of it.
func (w *world) verdict(c waitingCall, r *rand.Rand) (messages.Command, string, error) {
	id := fmt.Sprintf("person-%s-%d", c.callOf.Call, c.N)
	if c.Type == "tool.unknown" {
		return w.lookUp(id, c, r)
	}
	hash, remember := field(c.Event).ArgsHash, r.IntN(20) == 0
	if r.IntN(4) == 0 {
		text := "denied"
		return messages.Deny{ID: id, Call: c.callOf.Call, ArgsHash: hash, Text: &text}, "approval.denied", nil
	}
	return messages.Approve{ID: id, Call: c.callOf.Call, ArgsHash: hash, Remember: remember}, "approval.granted", nil
}

// lookUp waits until no program of an earlier life is left and says of a call
// whose outcome is unknown what the ledger has.
func (w *world) lookUp(id string, c waitingCall, r *rand.Rand) (messages.Command, string, error) {
	d := messages.Decide{ID: id, Call: c.callOf.Call, Outcome: messages.OutcomeCompleted}
	if err := w.calm(w.ctx); err != nil {
		return d, "", err
	}
	w.book.mu.Lock()
	asked := field(w.book.calls[c.callOf])
	w.book.mu.Unlock()
	var want entry
	if err := json.Unmarshal([]byte(asked.Arguments), &want); err != nil {
		return d, "", fmt.Errorf("call %s of %s: %w", c.callOf.Call, c.callOf.Agent, err)
	}
	lines, err := os.ReadFile(w.ledger())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return d, "", err
	}
	key := strings.Join([]string{c.callOf.Agent, string(c.Turn), string(c.callOf.Call)}, "/")
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
