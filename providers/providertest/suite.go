package providertest

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// T is what Run needs of a *testing.T. It is spelled out so that programs that
// start a Server do not carry the testing package.
type T[S any] interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
	Run(name string, f func(S)) bool
}

// Run checks the contract of [providers.Provider]. build makes a provider
// whose calls play steps in order, by whatever way it reaches a model.
func Run[S T[S]](t S, build func(t S, steps ...scripted.Step) providers.Provider) {
	t.Helper()
	for _, c := range suite[S]() {
		t.Run(c.name, func(t S) { c.check(t, build(t, c.steps...), c.steps) })
	}
}

type check[S T[S]] struct {
	name  string
	steps []scripted.Step
	check func(t S, p providers.Provider, steps []scripted.Step)
}

func suite[S T[S]]() []check[S] {
	usage := messages.Usage{Input: 20, Output: 7, Cached: 5, Reasoning: 3}
	calls := []scripted.Call{
		{ID: "call_b", Name: "weather", Arguments: `{"city":"Lyon","days":3}`},
		{ID: "call_a", Name: "weather", Arguments: `{"city":"Oslo"}`},
		{ID: "call_c", Name: "note", Arguments: `{"unfinished":`},
	}
	limited := &providers.Error{Kind: providers.RateLimit, Status: http.StatusTooManyRequests, Message: "slow down", Temporary: true, RetryAfter: 1500 * time.Millisecond}
	cut := &providers.Error{Kind: providers.Network, Message: "cut off", Temporary: true}
	many := slices.Repeat([]scripted.Step{{Text: "same", Pieces: 2}}, 32)
	return []check[S]{
		{"text", []scripted.Step{{Text: "Grüße aus Žilina, \"quoted\"\n", Pieces: 5, Usage: usage, Model: "m-1"}}, wholeAnswer[S]},
		{"parallel calls", []scripted.Step{{Text: "One moment.", Calls: calls, Usage: usage}}, wholeAnswer[S]},
		{"reasoning", []scripted.Step{{Reasoning: "They greet.", Text: "Hello"}}, wholeAnswer[S]},
		{"refusal", []scripted.Step{{Refusal: "I will not."}}, wholeAnswer[S]},
		{"cut short by the model", []scripted.Step{{Text: "It was a dark and", Finish: "length"}}, wholeAnswer[S]},
		{"empty answer", []scripted.Step{{}}, wholeAnswer[S]},
		{"made-up ids differ", []scripted.Step{{Calls: []scripted.Call{{Name: "a"}, {Name: "b"}}}}, madeUpIDs[S]},
		{"failure", []scripted.Step{scripted.Fail(limited)}, failure[S]},
		{"failure after deltas", []scripted.Step{{Text: "almost", Err: cut}}, failure[S]},
		{"cancel in the midst", []scripted.Step{{Text: "some text", Pieces: 2, After: 1, Gate: scripted.NewGate()}}, cancelled[S]},
		{"cancelled before", []scripted.Step{{Text: "never"}}, cancelledBefore[S]},
		{"many at once", many, atOnce[S]},
		{"forced choice", slices.Repeat([]scripted.Step{{Text: "ok"}}, 4), forcedChoice[S]},
		{"request is left alone", []scripted.Step{{Text: "ok"}}, untouched[S]},
	}
}

// sample is a request with a bit of everything that providers must carry.
func sample() providers.Request {
	cold := float32(0)
	return providers.Request{
		Model: "m-1", Instructions: "Be brief.",
		Items: []messages.Item{
			messages.Text(messages.RoleUser, "What does it weigh?"),
			messages.Text(messages.RoleAssistant, "I will look."),
			{Type: messages.ItemCall, CallID: "c1", Name: "weigh", Arguments: `{"what":"it"}`},
			{Type: messages.ItemCall, CallID: "c2", Name: "weigh", Arguments: `{"bro`},
			{Type: messages.ItemCallOutput, CallID: "c2"},
			{Type: messages.ItemCallOutput, CallID: "c1", Output: "3 kg"},
			messages.Text(messages.RoleDeveloper, "The person has left and come back."),
			{Type: messages.ItemMessage, Role: messages.RoleUser, Content: messages.Content{
				{Type: "text", Text: "And this?"}, {Type: "image_url", ImageURL: "https://example.com/x.png", Detail: "low"}}},
		},
		Tools:    []providers.ToolSpec{{Name: "weigh", Description: "Weighs.", Parameters: []byte(`{"type":"object"}`)}},
		Agent:    messages.AgentID{Tenant: messages.DefaultTenant, Kind: "suite", Key: "1"},
		Call:     "model_1",
		Settings: providers.Settings{Temperature: &cold, MaxOutputTokens: 100},
	}
}

func wholeAnswer[S T[S]](t S, p providers.Provider, steps []scripted.Step) {
	t.Helper()
	var shown, thought strings.Builder
	got, err := p.Generate(t.Context(), sample(), func(d providers.Delta) {
		if d.Kind == providers.DeltaText {
			shown.WriteString(d.Text)
		} else {
			thought.WriteString(d.Text)
		}
	})
	if err != nil {
		t.Fatalf("Generate: %v", err)
	}
	want, err := scripted.New(steps...).Generate(t.Context(), sample(), nil)
	if err != nil {
		t.Fatalf("the script itself fails: %v", err)
	}
	if steps[0].Refusal != "" && got.Finish == messages.FinishRefusal {
		want.Finish = got.Finish // some servers name it, others have an item of it alone
	}
	if got.Finish != want.Finish || got.Usage != want.Usage || steps[0].Model != "" && got.Model != want.Model {
		t.Fatalf("got finish %q, usage %+v, model %q; want %q, %+v, %q", got.Finish, got.Usage, got.Model, want.Finish, want.Usage, want.Model)
	}
	if g, w := essence(got.Items), essence(want.Items); !reflect.DeepEqual(g, w) {
		t.Fatalf("got items %+v\nwant %+v", g, w)
	}
	if shown.String() != steps[0].Text || thought.String() != steps[0].Reasoning {
		t.Fatalf("deltas said %q and thought %q; the answer is %+v", shown.String(), thought.String(), got.Items)
	}
}

// essence is items without what is a provider's own.
func essence(items []messages.Item) []messages.Item {
	items = append([]messages.Item{}, items...)
	for i := range items {
		items[i].ID, items[i].Raw, items[i].Provider, items[i].Model = "", nil, "", ""
	}
	return items
}

func madeUpIDs[S T[S]](t S, p providers.Provider, _ []scripted.Step) {
	t.Helper()
	got, err := p.Generate(t.Context(), sample(), nil)
	if err != nil || len(got.Items) != 2 {
		t.Fatalf("Generate: %d items, %v; want two calls", len(got.Items), err)
	}
	if a, b := got.Items[0].CallID, got.Items[1].CallID; a == "" || b == "" || a == b {
		t.Fatalf("calls have the ids %q and %q; want two different ones", a, b)
	}
}

func failure[S T[S]](t S, p providers.Provider, steps []scripted.Step) {
	t.Helper()
	var shown strings.Builder
	_, err := p.Generate(t.Context(), sample(), func(d providers.Delta) { shown.WriteString(d.Text) })
	var got *providers.Error
	if !errors.As(err, &got) {
		t.Fatalf("got error %v, want a *providers.Error", err)
	}
	want := providers.AsError(steps[0].Err)
	if got.Kind != want.Kind || got.Status != want.Status || got.Temporary != want.Temporary || got.RetryAfter != want.RetryAfter {
		t.Fatalf("got %#v\nwant %#v", got, want)
	}
	if shown.String() != steps[0].Text {
		t.Fatalf("deltas said %q before the failure; want %q", shown.String(), steps[0].Text)
	}
}

func cancelled[S T[S]](t S, p providers.Provider, _ []scripted.Step) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := p.Generate(ctx, sample(), func(providers.Delta) { cancel() })
	wantCanceled(t, err)
}

func cancelledBefore[S T[S]](t S, p providers.Provider, _ []scripted.Step) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Generate(ctx, sample(), nil)
	wantCanceled(t, err)
}

func wantCanceled[S T[S]](t S, err error) {
	t.Helper()
	var e *providers.Error
	if !errors.As(err, &e) || e.Kind != providers.Canceled || e.Temporary || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %#v; want a permanent *providers.Error of kind canceled that wraps context.Canceled", err)
	}
}

func atOnce[S T[S]](t S, p providers.Provider, steps []scripted.Step) {
	t.Helper()
	problems := make(chan string, len(steps))
	var wg sync.WaitGroup
	for range steps {
		wg.Go(func() {
			var shown strings.Builder
			got, err := p.Generate(t.Context(), sample(), func(d providers.Delta) { shown.WriteString(d.Text) })
			if err != nil || len(got.Items) != 1 || got.Items[0].Content.Text() != "same" || shown.String() != "same" {
				problems <- shown.String()
			}
		})
	}
	wg.Wait()
	if len(problems) > 0 {
		t.Fatalf("%d of %d concurrent calls went wrong; one showed %q", len(problems), len(steps), <-problems)
	}
}

// forcedChoice holds that every tool choice of the contract can be carried, and
// that it is the request's own.
func forcedChoice[S T[S]](t S, p providers.Provider, _ []scripted.Step) {
	t.Helper()
	for _, choice := range []string{"required", "none", "weigh", ""} {
		r := sample()
		r.ToolChoice = choice
		got, err := p.Generate(t.Context(), r, nil)
		if err != nil || len(got.Items) != 1 || got.Items[0].Content.Text() != "ok" {
			t.Fatalf("tool choice %q: got %+v, %v", choice, got.Items, err)
		}
	}
}

func untouched[S T[S]](t S, p providers.Provider, _ []scripted.Step) {
	t.Helper()
	r := sample()
	if _, err := p.Generate(t.Context(), r, nil); err != nil {
		t.Fatalf("Generate: %v", err)
	}
	if !reflect.DeepEqual(r, sample()) {
		t.Fatalf("the provider changed the request to %+v", r)
	}
}
