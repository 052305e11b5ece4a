package messages

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestParseAgentID(t *testing.T) {
	long := strings.Repeat("k", maxToken)
	for _, tc := range []struct{ in, full, want string }{
		{"assistant/a1", "default/assistant/a1", ""},
		{"acme/assistant/a1", "acme/assistant/a1", ""},
		{"default/assistant/a1", "default/assistant/a1", ""},
		{"A-Z_=9/" + long, "default/A-Z_=9/" + long, ""},
		{"assistant/" + long + "k", "", "129 bytes"},
		{"", "", "write kind/key"},
		{"assistant", "", "write kind/key"},
		{"a/b/c/d", "", "write kind/key"},
		{"assistant/", "", "key is empty"},
		{"/a1", "", "kind is empty"},
		{"/a/b", "", "tenant is empty"},
		{"assistant/a.1", "", "'.' at byte 1"},
		{"assistant/a*", "", "'*' at byte 1"},
		{"assistant/>", "", "'>' at byte 0"},
		{"assistant/a 1", "", "' ' at byte 1"},
		{"assistant/a\n1", "", `'\n' at byte 1`},
		{"assistant/a\x1b[2J", "", `'\x1b' at byte 1`},
		{"assistänt/a1", "", "'ä' at byte 6"},
		{"assistant/a\xff", "", "at byte 1"},
		{"te:nant/assistant/a1", "", "tenant \"te:nant\" has ':'"},
	} {
		a, err := ParseAgentID(tc.in)
		if tc.want == "" {
			if err != nil || a.Full() != tc.full {
				t.Errorf("%q: got %v, error %v, want %s", tc.in, a, err, tc.full)
			}
			if again, err := ParseAgentID(a.String()); err != nil || again != a {
				t.Errorf("parse %q again: got %v, error %v, want %v", a, again, err, a)
			}
			continue
		}
		if err == nil || a != (AgentID{}) || AsError(err).Code != BadAddress || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: got %v, error %v, want error %q", tc.in, a, err, tc.want)
		}
	}
}

func TestAgentIDIsText(t *testing.T) {
	raw, err := json.Marshal([]AgentID{testAgent, {"acme", "k", "x"}})
	if err != nil || string(raw) != `["assistant/a1","acme/k/x"]` {
		t.Fatalf("marshal: got %s, error %v", raw, err)
	}
	var back []AgentID
	if err := json.Unmarshal(raw, &back); err != nil || back[0] != testAgent || back[1].Tenant != "acme" {
		t.Fatalf("unmarshal: got %v, error %v", back, err)
	}
	if err := json.Unmarshal([]byte(`["a b/c"]`), &back); err == nil {
		t.Errorf("address with a space: got %v, want an error", back)
	}
}

// TestPartitionKnownValues compares partitions with those of nats-server's partition(64,…)
// transform.
func TestPartitionKnownValues(t *testing.T) {
	for _, tc := range []struct {
		a    AgentID
		want Partition
	}{
		{AgentID{"default", "assistant", "a1"}, 16},
		{AgentID{"", "", ""}, Partition(uint32(2166136261) % 64)},
		{AgentID{"a", "", ""}, Partition(uint32(0xe40c292c) % 64)},      // published FNV-1a vector
		{AgentID{"fo", "ob", "ar"}, Partition(uint32(0xbf9cf968) % 64)}, // likewise, for foobar
	} {
		if got := tc.a.Partition(); got != tc.want {
			t.Errorf("partition of %v: got %d, want %d", tc.a, got, tc.want)
		}
	}
}

func TestPartitionsAreEven(t *testing.T) {
	const agents = 64000
	var counts [Partitions]int
	for i := range agents {
		counts[AgentID{"default", "assistant", fmt.Sprintf("user-%d", i)}.Partition()]++
	}
	for p, n := range counts {
		if n < 800 || n > 1200 {
			t.Errorf("agents in partition %d: got %d of %d, want 800 to 1200", p, n, agents)
		}
	}
}
