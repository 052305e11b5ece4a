package projections

import (
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

// Streamed is what an event means to the reader of a turn's text who gets it in pieces, as models
// write it. The zero value: nothing.
type Streamed struct {
	Kind StreamedKind
	// Text is the whole text of a model's answer, in parts.
	Text []messages.Content
	// Answer is what the turn answers if nothing follows. Nil: the model asks for tools.
	Answer *Output
}

// StreamedKind is what an event does to the text.
type StreamedKind int

// The kinds. Text is set with StreamEnds, Answer with it and those after it.
const (
	StreamUnchanged StreamedKind = iota
	StreamBegins                 // a model is called: pieces of its answer may follow
	StreamCut                    // its answer was cut off
	StreamRepeated               // its answer was cut off, and it is called again
	StreamEnds                   // its answer is complete, and Text is all of it
	StreamReplaced               // a hook's answer replaces the model's
	StreamAnswered               // the turn has ended with its answer
)

// StreamedBy returns what an event means to the reader of its turn's text.
func StreamedBy(ev messages.Event) Streamed {
	switch ev := ev.(type) {
	case messages.ModelRequested:
		return Streamed{Kind: StreamBegins}
	case messages.ModelFailed:
		if ev.RetryAt == nil {
			return Streamed{Kind: StreamCut}
		}
		return Streamed{Kind: StreamRepeated}
	case messages.ModelRestarted:
		return Streamed{Kind: StreamRepeated}
	case messages.ModelCompleted:
		return Streamed{StreamEnds, texts(ev.Items), answerOf(ev)}
	case messages.HookDecided:
		if ev.Answer != "" {
			return Streamed{Kind: StreamReplaced, Answer: &Output{Text: ev.Answer}}
		}
	case messages.TurnCompleted:
		return Streamed{Kind: StreamAnswered, Answer: &Output{ev.Output, ev.Blob, ev.Finish}}
	}
	return Streamed{}
}

// Output is what a turn answers: a text, or the blob that holds it.
type Output struct {
	Text string
	// Blob is nil if Text is the answer.
	Blob *messages.Blob
	// Finish is that of turn.completed.
	Finish string
}

// String returns the text, or names the blob that holds it.
func (o *Output) String() string {
	if o.Blob != nil {
		return "[" + blobText(o.Blob) + "]"
	}
	return o.Text
}

// Same reports whether both are the same text. That of a blob is known by its hash alone.
func (o *Output) Same(p *Output) bool {
	if o.Blob == nil || p.Blob == nil {
		return o.Blob == p.Blob && o.Text == p.Text
	}
	return o.Blob.SHA256 == p.Blob.SHA256
}

// answerOf returns what the turn answers if this is its model's last answer; nil if it asks for
// more.
func answerOf(ev messages.ModelCompleted) *Output {
	text, last := AnswerText(ev.Items)
	switch {
	case !last:
		return nil
	case ev.Blob != nil:
		return &Output{Blob: ev.Blob, Finish: UnusualFinish(ev.Finish)}
	}
	return &Output{Text: text, Finish: UnusualFinish(ev.Finish)}
}

// AnswerText returns the text that a turn answers with if these items are its model's last answer.
// It reports false if they ask for more.
func AnswerText(items []messages.Item) (answer string, last bool) {
	if slices.ContainsFunc(items, func(item messages.Item) bool { return item.Type == messages.ItemCall }) {
		return "", false
	}
	var text []string
	for _, c := range texts(items) {
		text = append(text, c.Text())
	}
	return strings.Join(text, "\n"), true
}

// texts returns the contents of items that are the text of an answer.
func texts(items []messages.Item) (list []messages.Content) {
	for i := range items {
		if t := items[i].Type; t == messages.ItemMessage || t == messages.ItemRefusal {
			list = append(list, items[i].Content)
		}
	}
	return list
}
