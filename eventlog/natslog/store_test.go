package natslog_test

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// tamper flips a bit in the middle chunk of a stored blob.
func tamper(t *testing.T, c natslog.Config, a messages.AgentID, b messages.Blob) {
	t.Helper()
	ctx, prefix := context.Background(), c.Subjects.Blobs(a)+"."+string(b.SHA256)+"."
	stream, err := jetStream(t, c).Stream(ctx, natslog.NamesOf(c.Subjects).Blobs(a.Partition()))
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(ctx, prefix+"1")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(ctx, m.Sequence); err != nil {
		t.Fatal(err)
	}
	m.Data[len(m.Data)/2] ^= 1
	if _, err := jetStream(t, c).PublishMsg(ctx, &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}); err != nil {
		t.Fatal(err)
	}
}
