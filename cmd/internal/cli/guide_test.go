package cli_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// TestLargeRefundsWait holds that a refund of more than 1000 cents waits for a person.
func TestLargeRefundsWait(t *testing.T) {
	actorstest.VerifyFile(t, shop(t), "testdata/order-7.jsonl.gz")
}

// shop returns the providers and definitions of the page.
func shop(t *testing.T) actors.Config {
	refund, err := toolbox.Command(toolbox.CommandConfig{
		Name: "refund", Description: "Pay an order back", Command: []string{"./refund"},
		Parameters: json.RawMessage(`{"properties":{"cents":{"type":"integer"},"order":{"type":"integer"}},` +
			`"required":["order","cents"],"type":"object"}`),
		Approval: tool.Asked,
		ApproveIf: func(arguments json.RawMessage) (bool, error) {
			var args struct{ Cents int }
			err := json.Unmarshal(arguments, &args)
			return args.Cents > 1000, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return actors.Config{
		Providers: providers.Set{"demo": demo.New()},
		Definitions: []actors.Definition{{
			Kind: "support", Model: "demo/demo", Tools: []tool.Tool{refund},
			Instructions: "You help the customers of a shop. Use your tool to pay an order back.",
		}},
	}
}

// TestGuideShowsTest holds that the page shows the test above to the letter.
func TestGuideShowsTest(t *testing.T) {
	source, err := os.ReadFile("guide_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/guides/debugging.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "\n)\n\n")
	shown, _, _ := strings.Cut(rest, "\n// shop returns")
	if !regexp.MustCompile("(?m)^```go\n" + regexp.QuoteMeta(shown) + "```$").Match(page) {
		t.Errorf("docs/guides/debugging.md does not show\n%s", shown)
	}
}
