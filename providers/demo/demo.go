// Package demo is a model for the first minutes: it answers offline, needs no
// key, and always answers the same request the same way.
//
// It understands three things. Arithmetic, in signs or words ("17 times 3", "(3+4)^2"), goes
// to a tool that takes an expression. The name of a tool in a sentence calls that tool, with
// arguments from the sentence: a JSON object, key=value, a value beside its argument's name
// ("refund order 7 with 300 cents"), numbers and quoted texts in order, or all that is left. A
// question for the time calls the tool clock. To everything else it says what it is, what was
// said, and which tools it has.
//
// # Guarantees
//
//   - The same request gets the same answer, call ids included.
//   - A call's id is unique within the history that it is added to.
//   - Arguments are always a JSON object.
//   - After the results of its calls are in, it answers; it never calls in
//     circles, unless it is made to call.
//   - A forced tool choice is obeyed: with arguments from the messages as far as
//     they go, and made-up ones beyond; none means no call. A choice that no tool
//     of the request fits is refused.
package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// Option changes how the model answers.
type Option func(*model)

// Delay is a pause before each word of an answer, so that streaming can be
// seen. The end of a context ends it at once.
func Delay(d time.Duration) Option { return func(m *model) { m.delay = d } }

// New is the demo model. It answers to every model name.
func New(options ...Option) providers.Provider {
	m := &model{}
	for _, o := range options {
		o(m)
	}
	return m
}

type model struct{ delay time.Duration }

// Generate answers the request.
func (m *model) Generate(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
	if err := ctx.Err(); err != nil {
		return providers.Response{}, providers.AsError(err)
	}
	v := look(r.Items)
	calls, err := v.chosen(r.ToolChoice, r.Tools)
	if err != nil {
		return providers.Response{}, err
	}
	response := providers.Response{Finish: "stop", Model: r.Model}
	if len(calls) > 0 {
		response.Items, response.Finish = callItems(r.Items, calls), "tool_calls"
	} else {
		text, cut := limit(v.answer(r.Tools), r.Settings.MaxOutputTokens)
		if cut {
			response.Finish = "length"
		}
		if err := m.stream(ctx, text, emit); err != nil {
			return providers.Response{}, err
		}
		response.Items = []messages.Item{messages.Text(messages.RoleAssistant, text)}
	}
	response.Usage = usage(r, response.Items)
	return response, nil
}

// stream emits the text word by word.
func (m *model) stream(ctx context.Context, text string, emit func(providers.Delta)) error {
	for _, word := range pieces(text) {
		if m.delay > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(m.delay):
			}
		}
		if err := ctx.Err(); err != nil {
			return providers.AsError(err)
		}
		if emit != nil {
			emit(providers.Delta{Kind: providers.DeltaText, Text: word})
		}
	}
	return nil
}

var piece = regexp.MustCompile(`^\s+|\S+\s*`)

// pieces are the words of a text, each with the white space after it.
func pieces(text string) []string { return piece.FindAllString(text, -1) }

// limit cuts the text after n words; zero is no limit.
func limit(text string, n int) (string, bool) {
	if words := pieces(text); n > 0 && len(words) > n {
		return strings.TrimRightFunc(strings.Join(words[:n], ""), unicode.IsSpace), true
	}
	return text, false
}

// callItems are the calls as items. Their ids come from the history and their
// place, so that the same request has the same ones.
func callItems(history []messages.Item, calls []intent) []messages.Item {
	used := map[messages.CallID]bool{}
	for _, item := range history {
		used[item.CallID] = true
	}
	seen, err := json.Marshal(history)
	if err != nil { // raw items that are no JSON
		seen = []byte(strconv.Itoa(len(history)))
	}
	var items []messages.Item
	for i, c := range calls {
		for salt := 0; ; salt++ {
			sum := sha256.Sum256(append(seen, "/"+strconv.Itoa(i)+"/"+strconv.Itoa(salt)...))
			id := messages.CallID("call_" + hex.EncodeToString(sum[:10]))
			if used[id] {
				continue
			}
			used[id] = true
			items = append(items, messages.Item{Type: messages.ItemCall, CallID: id, Name: c.tool, Arguments: c.arguments})
			break
		}
	}
	return items
}

// usage counts words for tokens.
func usage(r providers.Request, answer []messages.Item) messages.Usage {
	words := func(items []messages.Item) int {
		n := 0
		for _, item := range items {
			for _, text := range []string{item.Content.Text(), item.Name, item.Arguments, item.Output} {
				n += len(strings.Fields(text))
			}
		}
		return n
	}
	u := messages.Usage{Input: len(strings.Fields(r.Instructions)) + words(r.Items), Output: words(answer)}
	for _, t := range r.Tools {
		u.Input += len(strings.Fields(t.Name)) + len(strings.Fields(t.Description)) + len(strings.Fields(string(t.Parameters)))
	}
	return u
}
