package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// asker asks the person at the terminal for a line. io.EOF means that there is
// none. What was typed before the question is no answer to it.
type asker func(ctx context.Context, prompt string) (string, error)

// person asks the person at the terminal; nil if there is none.
func (a *app) person() asker {
	if a.json() || !isTerminal(a.in) || !isTerminal(a.err) {
		return nil
	}
	in := bufio.NewReader(a.in)
	return func(ctx context.Context, prompt string) (string, error) {
		if f, ok := a.in.(*os.File); ok {
			discardTyped(f)
		}
		_, _ = in.Discard(in.Buffered()) // never fails
		_, _ = io.WriteString(a.err, prompt)
		type line struct {
			text string
			err  error
		}
		read := make(chan line, 1)
		go func() { // ends with the process, if ctx ends first
			text, err := in.ReadString('\n')
			read <- line{text, err}
		}()
		select {
		case l := <-read:
			return l.text, l.err
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// letItRun ends every question.
const letItRun = "\n  Let it run? Enter leaves it waiting: "

const (
	// offering is how long the agent's own question may come after the fact that
	// its turn is paused. They are sent one after the other.
	offering = 500 * time.Millisecond
	// heeding is how long an answer to it, or a command, may take to have its effect.
	heeding = 10 * time.Second
)

// settleHere asks the person at the terminal about what a paused turn waits for, one call after
// the other, and returns what it waits for then; false if it continues. Where the agent asks its
// caller, that question is answered: a user who prompts may have no right to publish commands.
// Otherwise a command decides.
func (t *turn) settleHere(ctx context.Context, e messages.TurnPaused) (projections.AgentStatus, bool, error) {
	offers := true
	for left := t.person == nil; !left; {
		if len(t.offered) == 0 && offers {
			offers = t.lookAhead(ctx, offering, func(client.Event) bool { return len(t.offered) > 0 || t.rests != e.Turn })
		}
		w, s, waits := projections.Waiting{}, projections.AgentStatus{}, t.rests == e.Turn
		if waits && len(t.offered) == 0 {
			s, waits = t.now(ctx, e)
		}
		if !waits {
			return s, false, nil
		}
		var err error
		if len(t.offered) > 0 {
			left, err = t.answerOffered(ctx)
		} else if w, left = t.unasked(s.Waiting); !left {
			left, err = t.decideOn(ctx, w)
		}
		if err != nil {
			return s, true, err
		}
	}
	s, waits := t.now(ctx, e)
	return s, waits, nil
}

// unasked is the first call that a person can be asked about: one that waits for
// approval with arguments that are known, and that was not asked about here.
// none means that there is none.
func (t *turn) unasked(waiting []projections.Waiting) (first projections.Waiting, none bool) {
	for _, w := range waiting {
		if w.Kind == messages.WaitApproval && w.ArgsHash != "" && !t.asked[placeOf(w)] {
			return w, false
		}
	}
	return first, true
}

// callOf is the place of the call that a question is about, as placeOf returns it.
func callOf(q client.Question) string { return q.ID[:max(0, strings.LastIndexByte(q.ID, '/'))] }

// answerOffered asks the person what the agent asks its caller. left means that
// there was no answer, or that it had no effect.
func (t *turn) answerOffered(ctx context.Context) (left bool, err error) {
	q := t.offered[0]
	t.offered = t.offered[1:]
	t.asked[callOf(q)] = true
	line, _, err := t.question(ctx, safe(q.Prompt)+letItRun)
	if line == "" || err != nil {
		return true, err
	}
	return t.answer(ctx, q, line)
}

// answer answers a question of the agent. left means that it had no effect.
func (t *turn) answer(ctx context.Context, q client.Question, line string) (left bool, err error) {
	place := callOf(q)
	_, own := t.known[place] // not of an agent below, of whose calls the stream has less
	if err := t.client.Answer(ctx, q, line); err != nil {
		return false, err
	}
	heeded := t.settled[place] || !own && t.rests == "" || t.lookAhead(ctx, heeding, func(ev client.Event) bool {
		askedAgain := ev.Type == "query" && callOf(*ev.Question) == place
		return t.settled[place] || !own && t.heardBelow(ev) || askedAgain || ev.Type == "notice" || ev.Terminal()
	})
	if !heeded {
		t.app.note("the answer has had no effect so far")
	}
	return !heeded, nil
}

// decideOn asks the person about a call and sends the decision as a command, or as
// the answer to the agent's own question if that has come after all. left means that
// there was none, or that the answer had no effect.
func (t *turn) decideOn(ctx context.Context, w projections.Waiting) (left bool, err error) {
	t.asked[placeOf(w)] = true
	prompt := t.agent + " waits for approval: " + projections.Printable(waitText(w), 0) + "\n  Answer " + messages.AnswerHelp + "."
	line, v, err := t.question(ctx, prompt+letItRun)
	if line == "" || err != nil {
		return true, err
	}
	if q, came := t.late(placeOf(w)); came { // a user who prompts may have no right to publish commands
		return t.answer(ctx, q, line)
	}
	_, err = t.client.Do(ctx, t.agent, v.Command(messages.Approval{Turn: w.Turn, Call: w.Call, ArgsHash: w.ArgsHash}))
	var refused *messages.Error
	if errors.As(err, &refused) && !refused.Temporary() {
		t.app.note("%s", projections.Printable(err.Error(), 0)) // another person was faster
		return false, nil
	}
	if err == nil {
		t.decided(w.Turn, w.Call) // the agent's own question about it may still come
	}
	if err == nil && w.Agent != "" && t.rests != "" { // it is passed on to an agent below
		t.lookAhead(ctx, heeding, func(ev client.Event) bool { return t.heardBelow(ev) || ev.Terminal() })
	}
	return false, err
}

// heardBelow reports whether an agent below has sent what it waits for now, or the turn
// continues.
func (t *turn) heardBelow(ev client.Event) bool {
	return t.rests == "" || ev.Type == messages.ChildWaiting{}.EventType()
}

// question asks until the answer can be read. An empty line means that there is
// none.
func (t *turn) question(ctx context.Context, prompt string) (line string, v messages.Decision, err error) {
	t.newLine()
	for {
		line, err = t.person(ctx, prompt)
		switch {
		case errors.Is(err, io.EOF):
			return "", v, nil
		case err != nil:
			return "", v, err
		}
		if line = strings.TrimSpace(line); line == "" {
			return "", v, nil
		}
		if v, err = messages.ParseDecision(line); err == nil {
			return line, v, nil
		}
		prompt = "  " + projections.Printable(err.Error(), 0) + letItRun
	}
}
