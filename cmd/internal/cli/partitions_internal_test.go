package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster/gateway"
)

func TestShares(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	rows := shares([]gateway.NodeRow{{Node: "N1", Host: "blue"}, {Node: "N2", Host: "red"}}, []gateway.PartitionRow{
		{Partition: 0, Owner: "N1", MeantFor: "N2", Agents: 3, Owing: 1, Waiting: 2, Oldest: now.Add(-time.Minute)},
		{Partition: 1, Owner: "N1", MeantFor: "N1", Agents: 4, InHand: 1, Oldest: now.Add(-time.Second)},
		{Partition: 2, Owner: "gone", Agents: 1},
		{Partition: 3},
	}, now)
	want := []string{"N1 blue 2 1 7 1 2 1 1m0s", "N2 red 0 0 0 0 0 0 ", "gone  1 0 1 0 0 0 ", "none  1 0 0 0 0 0 "}
	for i, row := range rows[1:] {
		if got := strings.Join(row, " "); i >= len(want) || got != want[i] {
			t.Errorf("line %d: %q", i, got)
		}
	}
	if len(rows) != 1+len(want) {
		t.Errorf("%d lines", len(rows))
	}
}
