package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// asker asks the person at the terminal for a line. io.EOF means that there is
// none.
type asker func(ctx context.Context, prompt string) (string, error)

// person asks whoever sits at the terminal; nil if nobody does.
func (a *app) person() asker {
	if a.json() || !isTerminal(a.in) || !isTerminal(a.err) {
		return nil
	}
	in := bufio.NewReader(a.in)
	return func(ctx context.Context, prompt string) (string, error) {
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

const howToAnswer = "  Let it run? yes, no, \"no: \" and a text for the agent, always or never (later calls, too); Enter leaves it waiting: "

// settleHere asks the person at the terminal about each call that waits for
// approval and says whether all are decided.
func (t *turn) settleHere(ctx context.Context, waiting []projections.Waiting) (all bool, err error) {
	if t.person == nil || len(waiting) == 0 {
		return false, nil
	}
	for _, w := range waiting {
		if w.Kind != projections.WaitsForApproval {
			return false, nil
		}
		c, err := t.question(ctx, w)
		if c == nil || err != nil {
			return false, err
		}
		_, err = t.client.Do(ctx, t.agent, c)
		var refused *messages.Error
		switch {
		case err == nil:
		case errors.As(err, &refused) && !refused.Temporary():
			t.app.note("%s", projections.Printable(err.Error(), 0)) // somebody else was faster
		default:
			return false, err
		}
	}
	return true, nil
}

// question asks about one call until the answer can be read. A nil command
// means that the call is left waiting.
func (t *turn) question(ctx context.Context, w projections.Waiting) (messages.Command, error) {
	if t.open {
		t.app.printf("\n")
		t.open = false
	}
	prompt := t.agent + " waits for approval: " + projections.Printable(waitText(w), 0) + "\n" + howToAnswer
	for {
		line, err := t.person(ctx, prompt)
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return nil, err
		}
		c, ok := answered(strings.TrimSpace(line), w)
		if ok {
			return c, nil
		}
		prompt = "  That was none of these.\n" + howToAnswer
	}
}

// answered is the decision about a call that a person's answer means; false if
// it means none, nil if the call is to be left waiting.
func answered(answer string, w projections.Waiting) (messages.Command, bool) {
	word, text, hasText := strings.Cut(answer, ":")
	grant, deny := messages.Approve{Turn: w.Turn, Call: w.Call, ArgsHash: w.ArgsHash}, messages.Deny{Turn: w.Turn, Call: w.Call, ArgsHash: w.ArgsHash}
	if hasText {
		text = strings.TrimSpace(text)
		deny.Text = &text
	}
	switch word = strings.ToLower(strings.TrimSpace(word)); {
	case word == "n" || word == "no":
		return deny, true
	case word == "never":
		deny.Remember = true
		return deny, true
	case hasText:
		return nil, false
	case word == "y" || word == "yes":
		return grant, true
	case word == "always":
		grant.Remember = true
		return grant, true
	}
	return nil, word == ""
}
