package tool_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/reprise-dev/reprise/providers/tool"
)

// Refund is what the model must say to pay an order back.
type Refund struct {
	Order string `json:"order" jsonschema:"The order to pay back"`
	Cents int    `json:"cents"`
}

func Example() {
	refund := tool.New("refund", "Pay an order back", tool.Rerun, // after a crash: again, with the same key
		func(ctx context.Context, r Refund) (string, error) {
			return fmt.Sprintf("paid %d cents for order %s under key %s", r.Cents, r.Order, tool.Key(ctx)), nil
		})

	ctx := tool.WithCall(context.Background(), tool.Call{Key: "k1", Attempt: 1}) // the runtime's part
	fmt.Println(refund.Call(ctx, json.RawMessage(`{"order":"7","cents":500}`)))
	fmt.Println(refund.Call(ctx, json.RawMessage(`{"order":"7"}`)))
	// Output:
	// paid 500 cents for order 7 under key k1 <nil>
	//  the arguments do not fit: required: missing properties: ["cents"]
}

func ExampleTyped_ApproveIf() {
	refund := tool.New("refund", "Pay an order back", tool.Rerun,
		func(_ context.Context, r Refund) (string, error) { return "paid " + r.Order, nil }).
		ApproveIf(func(r Refund) bool { return r.Cents > 5000 }) // small ones are paid at once

	fmt.Println(refund.NeedsApproval(json.RawMessage(`{"order":"7","cents":500}`)))
	fmt.Println(refund.NeedsApproval(json.RawMessage(`{"order":"7","cents":50000}`)))
	fmt.Println(refund.NeedsApproval(json.RawMessage(`{"order":"7"}`)))
	// Output:
	// false <nil>
	// true <nil>
	// false the arguments do not fit: required: missing properties: ["cents"]
}
