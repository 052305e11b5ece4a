package cli_test

import (
	"encoding/json"
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

// shop returns the providers and definitions of docs/guides/verify.md, which shows the test above. The file is
// what that page exports: run its commands to record it again.
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
