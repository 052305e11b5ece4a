package scripted_test

import (
	"context"
	"fmt"

	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// A model for tests plays a script: first it calls a tool, then it answers.
func ExampleNew() {
	model := scripted.New(
		scripted.Ask(scripted.Call{ID: "c1", Name: "refund", Arguments: `{"order":7}`}),
		scripted.Say("Done."),
	)
	for range 3 {
		r, err := model.Generate(context.Background(), providers.Request{}, nil)
		if err != nil {
			fmt.Println(providers.AsError(err).Kind)
			break
		}
		fmt.Printf("%s %s %q\n", r.Finish, r.Items[0].Name, r.Items[0].Content.Text())
	}
	// Output:
	// tool_calls refund ""
	// stop  "Done."
	// bad_request
}
