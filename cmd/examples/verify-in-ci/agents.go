package main

import (
	"context"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/providers/tool"
)

type refund struct {
	Order int `json:"order"`
	Cents int `json:"cents"`
}

// agents are the definitions that production runs and that the test checks.
func agents() []actors.Definition {
	pay := tool.New("refund", "Pay an order back", tool.Rerun, func(context.Context, refund) (string, error) {
		return "paid", nil
	}).ApproveIf(func(r refund) bool { return r.Cents > 5000 })
	return []actors.Definition{{Kind: "support", Model: "demo/demo", Instructions: "Be brief.", Tools: []tool.Tool{pay}}}
}
