package profile_test

import (
	"fmt"

	"github.com/reprise-dev/reprise/providers/profile"
)

// The rules of requests to a server: those of a configuration come first.
func ExampleFor() {
	server := profile.ByURL("https://api.mistral.ai/v1")
	rules := profile.For(server, "mistral-large", profile.Rules{Calls: profile.One})
	fmt.Println(server.Name, rules.CallIDs, rules.Calls, rules.AfterResults)
	// Output: mistral nine one assistant
}
