package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// What stands where an API wants a text and there is none.
const (
	NoText   = "(no text)"
	NoOutput = "(no output)"
)

// NoteMark begins a note of the runtime that is sent as a user's message.
const NoteMark = "[System note]\n"

// InOrder calls f with the items of a history, and where in it each stands: results follow
// the calls of one answer, and what came in between follows the results. It returns an error
// for a call without a result, and for a result without a call. said reports whether an item is
// part of what a model says.
func InOrder(items []messages.Item, said func(messages.Item) bool, f func(i int, it messages.Item) error) error {
	o := ordering{items: items, said: said, f: f}
	for i := range items {
		if err := o.add(i); err != nil {
			return err
		}
	}
	if len(o.open) > 0 {
		return Invalid("the history has no result for call " + string(o.open[0]))
	}
	return nil
}

type ordering struct {
	items    []messages.Item
	said     func(messages.Item) bool
	f        func(i int, it messages.Item) error
	open     []messages.CallID // calls without a result so far
	speaking bool              // no result has come since the last call
	waiting  []int             // what came while calls were open
}

func (o *ordering) add(i int) error {
	it := o.items[i]
	switch {
	case it.Type == messages.ItemCallOutput:
		return o.addResult(i)
	case len(o.open) > 0 && (!o.speaking || !o.said(it)):
		o.waiting = append(o.waiting, i)
		return nil
	case it.Type == messages.ItemCall:
		o.open, o.speaking = append(o.open, it.CallID), true
	}
	return o.f(i, it)
}

func (o *ordering) addResult(i int) error {
	at := slices.Index(o.open, o.items[i].CallID)
	if at < 0 {
		return Invalid("the history has a result for call " + string(o.items[i].CallID) + ", which is not open")
	}
	o.open, o.speaking = slices.Delete(o.open, at, at+1), false
	if err := o.f(i, o.items[i]); err != nil || len(o.open) > 0 {
		return err
	}
	waiting := o.waiting
	o.waiting = nil
	for _, w := range waiting { // a call among them makes those after it wait again
		if err := o.add(w); err != nil {
			return err
		}
	}
	return nil
}

// Said reports whether it is part of what a model says.
func Said(it messages.Item) bool {
	switch it.Type {
	case messages.ItemReasoning, messages.ItemRefusal, messages.ItemCall:
		return true
	}
	return it.Type == messages.ItemMessage && it.Role == messages.RoleAssistant
}

// Lost is the note in place of an item that cannot be sent.
func Lost(it messages.Item) string {
	return fmt.Sprintf("[Here stood an item of type %s%s, which cannot be shown to this model.]", it.Type, from(it))
}

func from(it messages.Item) string {
	if it.Provider == "" {
		return ""
	}
	return " from " + it.Provider
}

// Join returns two texts with an empty line between them.
func Join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// Instructions are those of a request, with what is left out of its history.
func Instructions(r providers.Request, omitted []string) string {
	if len(omitted) == 0 {
		return r.Instructions
	}
	return Join(r.Instructions, "[The reasoning of "+strings.Join(omitted, ", ")+" is left out of this conversation.]")
}

// Carried returns an error if an API cannot carry a part of c.
func Carried(c messages.Content, api string) error {
	for _, part := range c {
		if part.Type != "text" && part.Type != "image_url" {
			return &providers.Error{Kind: providers.Unsupported,
				Message: fmt.Sprintf("%s cannot carry a content part of type %q", api, part.Type)}
		}
	}
	return nil
}

// IsImage reports whether a part is an image.
func IsImage(p messages.Part) bool { return p.Type == "image_url" }

// WithoutImages is the text of c with a note in the place of each image.
func WithoutImages(c messages.Content) string {
	if !slices.ContainsFunc(c, IsImage) {
		return c.Text()
	}
	noted := slices.Clone(c)
	for i, part := range noted {
		if IsImage(part) {
			noted[i] = messages.Part{Type: "text", Text: "[an image, which cannot be shown here]"}
		}
	}
	return noted.Text()
}
