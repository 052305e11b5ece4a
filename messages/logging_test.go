package messages_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

func TestLogAttr(t *testing.T) {
	a := messages.AgentID{Tenant: "default", Kind: "k", Key: "x"}
	for _, c := range []struct {
		attr slog.Attr
		want string
	}{
		{a.LogAttr(7), "agent=k/x partition=" + a.Partition().String() + " epoch=7 more=1"},
		{a.LogAttr(0), "agent=k/x partition=" + a.Partition().String() + " more=1"},
		{messages.AgentID{}.LogAttr(7), "msg=said more=1"},
	} {
		var b bytes.Buffer
		slog.New(slog.NewTextHandler(&b, nil)).Warn("said", c.attr, "more", 1)
		if !strings.HasSuffix(strings.TrimSpace(b.String()), c.want) {
			t.Errorf("line: got %s, want the end %q", &b, c.want)
		}
	}
}
