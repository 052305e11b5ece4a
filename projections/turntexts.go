package projections

import (
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// TurnLine is a turn as a list shows it: a line of `reprise turns -o json`.
type TurnLine struct {
	Turn
	// Question is the beginning of the text of its inputs. Empty: it has none, or the list was asked
	// for without texts.
	Question string `json:"question,omitempty"`
	// Answer is the beginning of its output. Empty: it has none, or the list was asked for without texts.
	Answer string `json:"answer,omitempty"`
}

// TurnTexts lists an agent's turns with what was asked and answered. The zero value has none.
type TurnTexts struct {
	Turns
	inputs acceptedInputs
	texts  map[messages.TurnID]*askedAndAnswered
}

// askedAndAnswered is what was asked and answered in a turn.
type askedAndAnswered struct {
	inputs           int // of the turn that are in question
	question, answer string
}

// Apply folds event number n.
func (t *TurnTexts) Apply(n messages.EventNumber, ev messages.Event) {
	t.Turns.Apply(n, ev)
	e := t.event(n, ev)
	t.inputs.accept(e)
	if turn := t.turn(e.Turn); turn != nil {
		t.text(turn, ev)
	}
	if t.inputs.drop(e); e.Is(messages.EndsAgent) {
		t.texts = nil
	}
}

// text takes over the texts that an event brings to its turn.
func (t *TurnTexts) text(turn *Turn, ev messages.Event) {
	text := t.texts[turn.ID]
	if text == nil {
		if t.texts == nil {
			t.texts = make(map[messages.TurnID]*askedAndAnswered)
		}
		text = new(askedAndAnswered)
		t.texts[turn.ID] = text
	}
	for _, in := range t.inputs.of(turn.Inputs[text.inputs:]) {
		text.question = beginning(strings.TrimSpace(text.question+"\n"+ContentText(in.Content)), MaxPreview)
	}
	text.inputs = len(turn.Inputs)
	if output, ok := turnOutput(ev); ok {
		text.answer = beginning(output.String(), MaxPreview)
	}
}

// Lines returns every turn with its texts, oldest first.
func (t *TurnTexts) Lines() []TurnLine {
	var lines []TurnLine
	for _, turn := range t.List() {
		line := TurnLine{Turn: turn}
		if text := t.texts[turn.ID]; text != nil {
			line.Question, line.Answer = text.question, text.answer
		}
		lines = append(lines, line)
	}
	return lines
}

// TurnInput is an input of a turn.
type TurnInput struct {
	// ID is the id of the input.
	ID string `json:"id"`
	// N is the number of the event that accepted it.
	N messages.EventNumber `json:"n"`
	// At is the time of that event.
	At time.Time `json:"at,omitzero"`
	// Person is who sent it. Nil: none is named.
	Person *messages.Person `json:"person,omitempty"`
	// Content is what the model reads.
	Content messages.Content `json:"content"`
}

// acceptedInputs are inputs that have not ended. The zero value has none.
type acceptedInputs struct{ list []TurnInput }

// accept adds the input that an event accepts.
func (a *acceptedInputs) accept(e *event) {
	if in, ok := e.Event.(messages.InputAccepted); ok {
		a.list = append(a.list, TurnInput{ID: in.Input, N: e.n, At: e.at, Person: e.by, Content: in.Content})
	}
}

// drop drops the inputs that an event ends, all of them where it ends the agent or clears it.
func (a *acceptedInputs) drop(e *event) {
	switch {
	case e.Is(messages.EndsAgent | messages.ClearsAgent):
		a.list = nil
	case e.Is(messages.EndsInput):
		ended := messages.InputsOf(e.Event)
		a.list = without(a.list, func(in *TurnInput) bool { return slices.Contains(ended, in.ID) })
	}
}

// of returns the inputs with these ids that have not ended.
func (a *acceptedInputs) of(ids []string) (list []TurnInput) {
	for _, id := range ids {
		if in := lastOf(a.list, func(in *TurnInput) bool { return in.ID == id }); in != nil {
			list = append(list, *in)
		}
	}
	return list
}

// turnOutput returns the output that an event sets for its turn; false if it sets none.
func turnOutput(ev messages.Event) (Output, bool) {
	done, ok := ev.(messages.TurnCompleted)
	return Output{Text: done.Output, Blob: done.Blob}, ok
}
