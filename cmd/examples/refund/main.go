// Refund pays orders back through a payment service over HTTP. Killed in the middle of a payment and started again, it
// continues the same turn and sends the same idempotency key. Without PAYMENTS_URL nothing is paid; without
// OPENAI_API_KEY the demo model answers.
//
//	go run ./cmd/examples/refund
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/tool"
)

// Refund is what the model fills in; its JSON schema comes from here.
type Refund struct {
	Order int `json:"order"`
	Cents int `json:"cents"`
}

func pay(ctx context.Context, r Refund) (string, error) {
	service := os.Getenv("PAYMENTS_URL")
	if service == "" {
		return fmt.Sprintf("%d cents for order %d (not paid: there is no PAYMENTS_URL)", r.Cents, r.Order), nil
	}
	form := url.Values{"key": {tool.Key(ctx)}, "order": {strconv.Itoa(r.Order)}, "cents": {strconv.Itoa(r.Cents)}}
	answer, err := http.PostForm(service, form)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	return answer.Status, nil
}

func main() {
	ctx := context.Background()
	refund := tool.New("refund", "Pay an order back", tool.Rerun, pay)       // after a crash: again, with the same key
	refund = refund.ApproveIf(func(r Refund) bool { return r.Cents > 5000 }) // a larger one waits for a person
	set, model := providers.Set{"demo": demo.New()}, "demo/demo"
	if key := os.Getenv("OPENAI_API_KEY"); key != "" {
		server := openai.BaseURL(cmp.Or(os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1"))
		set, model = providers.Set{"openai": openai.New(key, server)}, "openai/gpt-5.5"
	}
	node, err := cluster.Start(ctx, cluster.Config{
		Data:      "data", // or NATS: "nats://…", or Conn: nc
		Providers: set,
		Agents:    []actors.Definition{{Kind: "support", Model: model, Instructions: "Be brief.", Tools: []tool.Tool{refund}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close() // what runs continues at the next start
	// The id is the mail's: run again after a crash, the program continues the same turn.
	mail := messages.Input{ID: "mail-1", Content: messages.TextContent("Order 7 came broken. Refund 1250 cents for order 7.")}
	for ev, err := range node.Client().AskInput(ctx, "support/ticket-42", mail) {
		if err != nil {
			log.Print(err)
		}
		if ev.Terminal() {
			fmt.Println(ev.Output)
		}
	}
}
