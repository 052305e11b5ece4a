package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/messages"
)

func row(id string, change func(*gateway.NodeRow)) gateway.NodeRow {
	n := gateway.NodeRow{
		Node: id, Host: "h-" + id, Version: "v1", Kinds: []string{"a", "b"}, Answers: true, PingMS: 1,
		NodeTold: &gateway.NodeTold{Ready: true, Definitions: map[string]string{"a": "1", "b": "1"}},
	}
	if change != nil {
		change(&n)
	}
	return n
}

func TestJudgeNodes(t *testing.T) {
	here := row("n1", func(n *gateway.NodeRow) { n.Here = true })
	for name, c := range map[string]struct {
		change func(*gateway.NodeRow)
		status string
		parts  []string
	}{
		"sound":  {nil, "ok", []string{"2 there, all answer"}},
		"silent": {func(n *gateway.NodeRow) { n.Answers, n.NodeTold, n.Error = false, nil, "no answer within 1s" }, "warn", []string{"n2 on h-n2", "no answer within 1s"}},
		"unready": {func(n *gateway.NodeRow) {
			n.Ready, n.Reasons = false, []gateway.Reason{{Code: "nats", Text: "NATS is away"}}
		}, "warn", []string{"n2 on h-n2 is not ready: NATS is away"}},
		"full": {func(n *gateway.NodeRow) {
			n.Ready, n.Reasons = false, []gateway.Reason{{Code: "nats", Text: "NATS is away"}, {Code: "store", Text: "no room"}}
		}, "fail", []string{"n2 on h-n2 is not ready: NATS is away; no room"}},
		"damaged": {func(n *gateway.NodeRow) {
			n.Ready, n.Reasons = false, []gateway.Reason{{Code: "damage", Text: "a stream has lost messages"}}
		}, "fail", []string{"a stream has lost messages"}},
		"draining": {func(n *gateway.NodeRow) { n.Draining, n.Ready = true, false }, "ok", []string{"all answer"}},
		"late":     {func(n *gateway.NodeRow) { n.ClockMS = -1500 }, "warn", []string{"clock of node n2", "-1.5 s", "NTP"}},
		"far":      {func(n *gateway.NodeRow) { n.ClockMS, n.PingMS = 1500, 1200 }, "ok", []string{"all answer"}}, // it may be the way there
		"lacks":    {func(n *gateway.NodeRow) { n.Kinds = []string{"a"} }, "warn", []string{"n2", "does not serve b", "every kind"}},
		"apart":    {func(n *gateway.NodeRow) { n.Definitions = map[string]string{"a": "1", "b": "2"} }, "warn", []string{"kind b is defined in 2 ways", "n1; n2"}},
		"older":    {func(n *gateway.NodeRow) { n.Version = "v0" }, "note", []string{"2 versions", "v0: n2", "v1: n1"}},
	} {
		found := judgeNodes([]gateway.NodeRow{here, row("n2", c.change)})
		if len(found) != 1 || found[0].Check != "nodes" || found[0].Status != c.status {
			t.Errorf("%s: %+v, want one %s", name, found, c.status)
			continue
		}
		for _, part := range c.parts {
			if !strings.Contains(found[0].Detail, part) {
				t.Errorf("%s: %q is missing in %q", name, part, found[0].Detail)
			}
		}
	}
}

// A partition that has an owner again when it is looked at again is not reported.
func TestOwnerless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		free, err := ownerless(t.Context(), time.Minute, func(context.Context) ([]gateway.PartitionRow, error) {
			looks++
			rows := []gateway.PartitionRow{{Partition: 7, Owner: "n1"}, {Partition: 9}}
			if looks > 1 {
				rows[1].Owner = "n2"
			}
			return rows, nil
		})
		if err != nil || len(free) != 0 || looks != 2 {
			t.Errorf("%q, %v after %d looks", free, err, looks)
		}
		free, err = ownerless(t.Context(), 0, func(context.Context) ([]gateway.PartitionRow, error) {
			return []gateway.PartitionRow{{Partition: 7, Owner: "n1"}, {Partition: 9}}, nil
		})
		if err != nil || !slices.Equal(free, []string{messages.Partition(9).String()}) {
			t.Errorf("%q, %v", free, err)
		}
	})
}

func TestSince(t *testing.T) {
	now := time.Now()
	for want, at := range map[string]time.Time{
		"": {}, "0s": now.Add(time.Hour), "1m30s": now.Add(-90 * time.Second), "2h5m": now.Add(-125 * time.Minute), "3d4h": now.Add(-76 * time.Hour),
	} {
		if got := since(at, now); got != want {
			t.Errorf("since %v is %q, want %q", now.Sub(at), got, want)
		}
	}
}
