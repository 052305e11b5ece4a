package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/projections"
)

// A person is shown the beginning of a long queue, and how long it is.
func TestLongQueue(t *testing.T) {
	var out bytes.Buffer
	a := &app{out: &out, started: "reprise"}
	s := projections.AgentStatus{}
	for i := range 996 {
		s.Queue = append(s.Queue, fmt.Sprintf("in-%d", i))
	}
	a.status(s)
	text := out.String()
	if strings.Count(text, "in-") != shownInputs || !strings.Contains(text, "996") || !strings.Contains(text, "and 986 more: `reprise show") {
		t.Error(text)
	}
}
