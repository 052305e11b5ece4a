package providers_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// A provider of your own is a function: here a model that repeats what it reads, in capitals. It
// stands in cluster.Config.Providers under the name that definitions write before the slash.
func ExampleProvider() {
	loud := providers.Func(func(_ context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
		if len(r.Items) == 0 {
			return providers.Response{}, &providers.Error{Kind: providers.BadRequest, Message: "there is nothing to repeat"}
		}
		text := strings.ToUpper(r.Items[len(r.Items)-1].Content.Text())
		emit(providers.Delta{Kind: providers.DeltaText, Text: text})
		return providers.Response{
			Items:  []messages.Item{messages.Text(messages.RoleAssistant, text)},
			Finish: messages.FinishStop, Model: r.Model, Usage: messages.Usage{Input: len(text), Output: len(text)},
		}, nil
	})

	set := providers.Set{"loud": loud}
	provider, model, err := set.Split("loud/v1")
	if err != nil {
		fmt.Println(err)
		return
	}
	request := providers.Request{Model: model, Items: []messages.Item{messages.Text(messages.RoleUser, "hello")}}
	response, err := provider.Generate(context.Background(), request, func(d providers.Delta) { fmt.Println("delta", d.Text) })
	fmt.Println(response.Model, response.Items[0].Content.Text(), err)
	// Output:
	// delta HELLO
	// v1 HELLO <nil>
}
