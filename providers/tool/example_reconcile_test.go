package tool_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/reprise-dev/reprise/providers/tool"
)

// What happens to a call that was running when the node died.
func ExampleOnUnknown() {
	lookup := func(context.Context, struct{}) (string, error) { return "", nil }
	for _, t := range []tool.Tool{
		tool.New("lookup", "It only reads: run again", tool.ReadOnly, lookup),
		tool.New("pay", "It takes the key: run again with the same one", tool.Rerun, lookup),
		tool.New("ship", "It can look: ask what became of the key", tool.Reconcile, lookup),
		tool.New("mail", "A person decides", tool.Pause, lookup),
	} {
		fmt.Println(t.Spec().Name, t.Spec().OnUnknown)
	}
	// Output:
	// lookup read_only
	// pay rerun
	// ship reconcile
	// mail pause
}

// A tool whose service can be asked what became of a call.
func ExampleTyped_ReconcileWith() {
	booked := map[string]string{"k1": "paid 500 cents"} // the books of the service, by key
	refund := tool.New("refund", "Pay an order back", tool.Reconcile,
		func(ctx context.Context, r Refund) (string, error) {
			booked[tool.Key(ctx)] = fmt.Sprintf("paid %d cents", r.Cents)
			return booked[tool.Key(ctx)], nil
		}).ReconcileWith(func(_ context.Context, key string) (string, tool.Found, error) {
		if result, ok := booked[key]; ok {
			return result, tool.Done, nil
		}
		return "", tool.NotDone, nil // it runs
	})
	for _, key := range []string{"k1", "k2"} {
		result, found, err := refund.Reconcile(context.Background(), key)
		fmt.Println(found == tool.Done, result, err)
	}
	// Output:
	// true paid 500 cents <nil>
	// false  <nil>
}

// The same key in every attempt of a call, for services that accept one.
func ExampleKey() {
	charge := tool.New("charge", "Charge a card", tool.Rerun, func(ctx context.Context, _ struct{}) (string, error) {
		return "Idempotency-Key: " + tool.Key(ctx), nil
	})
	ctx := tool.WithCall(context.Background(), tool.Call{Key: "default/shop/ann/t4/c1", Attempt: 2}) // the runtime's part
	fmt.Println(charge.Call(ctx, json.RawMessage(`{}`)))
	// Output: Idempotency-Key: default/shop/ann/t4/c1 <nil>
}

// How far a long call is, for those who follow the agent.
func ExampleProgress() {
	index := tool.New("index", "Index the archive", tool.ReadOnly, func(ctx context.Context, _ struct{}) (string, error) {
		for _, part := range []string{"half", "all"} {
			tool.Progress(ctx, part+" of it")
		}
		return "done", nil
	})
	ctx := tool.WithProgress(context.Background(), func(text string) { fmt.Println(text) }) // the runtime's part
	fmt.Println(index.Call(ctx, json.RawMessage(`{}`)))
	// Output:
	// half of it
	// all of it
	// done <nil>
}
