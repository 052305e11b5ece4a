package openai_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/profile"
)

// A server that follows the API of OpenAI, with a header, a member of each request and a limit of time.
func ExampleBaseURL() {
	groq := openai.New("",
		openai.BaseURL("https://api.groq.com/openai/v1"),
		openai.Name("groq"), // what stands before the slash of its models
		openai.Header("X-Team", "support"),
		openai.ExtraBody("service_tier", json.RawMessage(`"flex"`)),
		openai.Timeout(2*time.Minute))
	fmt.Println(groq.Speaks("llama-3.3-70b"))
	// Output: groq chat
}

// Requests for a server whose address does not show which one it is.
func ExampleProfile() {
	server, err := profile.ByName("vllm")
	if err != nil {
		fmt.Println(err)
		return
	}
	local := openai.New("", openai.BaseURL("http://10.0.0.7:8000/v1"), openai.Profile(server),
		openai.Rules(profile.Rules{System: profile.First})) // and what this one differs in
	fmt.Println(local.Speaks("qwen3-32b"))
	// Output: vllm chat
}
