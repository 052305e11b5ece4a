package profile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// reported are refusals that no fixture of package providertest has in so many words, most of
// them as users reported them.
var reported = []string{
	"This is not a chat model and thus not supported in the v1/chat/completions endpoint.",           // ThunderAI#570
	"a call with tools to this model requires the Responses API",                                     // package openai
	"reasoning `encrypted_content` was not issued to this caller",                                    // opencode#48773
	"Encrypted content is not supported with this model.",                                            // of a model that does not reason
	"Stream option include_usage is not supported",                                                   // opencode#4698
	"Only user and assistant roles are supported!",                                                   // anything-llm#2837
	"Unexpected role 'system' after role 'tool'",                                                     // the order of roles, as below
	"Unexpected role 'user' after role 'tool'",                                                       // avante#2562
	"thinking is enabled but reasoning_content is missing in assistant tool call message at index 2", // mastra#12592
	"Missing `reasoning_content` field in the assistant message at message index 1.",                 // langchain#34166
	"property 'reasoning_content' is unsupported",                                                    // jan#8136
	`{"type":"extra_forbidden","loc":["messages",2,"assistant","reasoning_content"]}`,                // litellm#30835
}

// Each text of the repairs stands in a refusal that servers are known to send, and leads to the
// rules of its row.
func TestRepairs(t *testing.T) {
	refusals := strings.ToLower(strings.Join(append(fixtures(t), reported...), "\n"))
	plain, _ := ByName(Plain)
	for _, fix := range repairs {
		for _, word := range fix.words {
			if !strings.Contains(refusals, word) {
				t.Errorf("no server is known to say %q", word)
			}
			changed, lasting, ok := Repair("Bad request: "+strings.ToUpper(word), plain.Rules, Rules{})
			if want := fix.rules.Or(plain.Rules); ok && lasting == fix.once || !reflect.DeepEqual(changed, want) {
				t.Errorf("%s: got %+v, want %+v", word, changed, want)
			}
		}
	}
}

// fixtures returns the texts in the fixtures of the servers that are imitated.
func fixtures(t *testing.T) (texts []string) {
	files, err := filepath.Glob("../providertest/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no fixtures", err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(file, err)
		}
		walk(v)
	}
	return texts
}
