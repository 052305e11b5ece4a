package scripted_test

import (
	"context"
	"fmt"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// A gate holds a model in the middle of an answer, so that a test can act there without sleeping.
func ExampleNewGate() {
	gate := scripted.NewGate()
	model := scripted.New(scripted.Step{Text: "Good morning", Pieces: 2, Gate: gate, After: 1})
	go func() {
		<-gate.Reached()
		fmt.Println("(the first piece is out)")
		gate.Release()
	}()
	_, err := model.Generate(context.Background(), providers.Request{}, func(d providers.Delta) { fmt.Printf("%q\n", d.Text) })
	fmt.Println(err)
	// Output:
	// "Good m"
	// (the first piece is out)
	// "orning"
	// <nil>
}

// A model that looks at the request.
func ExampleFunc() {
	model := scripted.Func(func(r providers.Request) scripted.Step {
		return scripted.Say("You wrote: " + r.Items[len(r.Items)-1].Content.Text())
	})
	request := providers.Request{Items: []messages.Item{messages.Text(messages.RoleUser, "hello")}}
	response, err := model.Generate(context.Background(), request, nil)
	fmt.Println(response.Items[0].Content.Text(), err)
	// Output: You wrote: hello <nil>
}
