package messages_test

import (
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// The digest covers what a command does. Fields that a retry may change are not part of it.
func TestCommandDigest(t *testing.T) { // A8
	soon := time.Now().Add(time.Hour)
	in := messages.Input{ID: "u1", Content: messages.TextContent("hello")}
	with := func(change func(*messages.Input)) messages.Input {
		other := in
		change(&other)
		return other
	}
	daily := with(func(in *messages.Input) { in.Cron = "0 9 * * *" })
	for name, c := range map[string]struct {
		a, b messages.Command
		same bool
	}{
		"id":             {in, with(func(in *messages.Input) { in.ID = "u2" }), true},
		"deadline":       {in, with(func(in *messages.Input) { in.Deadline = &soon }), true},
		"reply":          {in, with(func(in *messages.Input) { in.Reply = "mine" }), true},
		"metadata":       {in, with(func(in *messages.Input) { in.Metadata = []byte(`{"a":1}`) }), true},
		"default policy": {in, with(func(in *messages.Input) { in.Policy = messages.PolicyQueue }), true},
		"policy":         {in, with(func(in *messages.Input) { in.Policy = messages.PolicySteer }), false},
		"text":           {in, with(func(in *messages.Input) { in.Content = messages.TextContent("hello!") }), false},
		"parts": {with(func(in *messages.Input) {
			in.Content = messages.Content{{Type: "text", Text: "ab"}, {Type: "text", Text: "c"}}
		}),
			with(func(in *messages.Input) {
				in.Content = messages.Content{{Type: "text", Text: "a"}, {Type: "text", Text: "bc"}}
			}), false},
		"later":  {in, with(func(in *messages.Input) { in.In = messages.Span(time.Hour) }), false},
		"when":   {with(func(in *messages.Input) { in.In = messages.Span(time.Hour) }), with(func(in *messages.Input) { in.At = &soon }), true},
		"cron":   {daily, with(func(in *messages.Input) { in.Cron = "0 8 * * *" }), false},
		"zone":   {daily, with(func(in *messages.Input) { in.Cron, in.Zone = daily.Cron, "Europe/Berlin" }), false},
		"type":   {messages.Interrupt{ID: "i"}, messages.Abort{ID: "i"}, false},
		"call":   {messages.Approve{ID: "a", Call: "c1"}, messages.Approve{ID: "b", Call: "c1"}, true},
		"reason": {messages.Clear{ID: "a", Reason: "enough"}, messages.Clear{ID: "a"}, true},
		"bound":  {messages.Approve{ID: "a", Call: "c1", Turn: "t1", ArgsHash: "h"}, messages.Approve{ID: "a", Call: "c1"}, true},
		"turn":   {messages.Interrupt{ID: "i", Turn: "t1"}, messages.Interrupt{ID: "i", Turn: "t2"}, false},
		"calls":  {messages.Approve{ID: "a", Call: "c1"}, messages.Approve{ID: "a", Call: "c2"}, false},
	} {
		a, b := messages.CommandDigest(c.a), messages.CommandDigest(c.b)
		if (a == b) != c.same || len(a) != 16 {
			t.Errorf("%s: got %s and %s, want equal: %t", name, a, b, c.same)
		}
	}
	if d := messages.CommandDigest(messages.Task{ID: "t"}); d != "" {
		t.Errorf("digest of a task: got %s, want none", d)
	}
}

// An encrypted frame shows neither the digest, from which a short text could be guessed, nor the trace
// context, in which vendors may have written anything.
func TestOriginIsEncrypted(t *testing.T) {
	a := messages.AgentID{Tenant: "default", Kind: "test", Key: "ada"}
	digest := messages.CommandDigest(messages.Input{Content: messages.TextContent("yes")})
	f := &messages.Frame{
		ID: "01JZX4Q0000000000000000000", Epoch: 1, First: 1, Time: time.Unix(1, 0).UTC(),
		Cause:  messages.Cause{Type: "input", ID: "u1", Endpoint: "in", Digest: digest},
		Trace:  "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 vendor=ada",
		Events: []messages.Event{messages.CommandNoop{Command: "clear"}},
	}
	b, err := messages.EncryptFrame(a, f, "k1", flipping{})
	if err != nil || strings.Contains(string(b), digest) || strings.Contains(string(b), "b7ad6b7169203331") {
		t.Fatalf("encrypted frame: got error %v, or the digest or the trace context in plain", err)
	}
	encrypted, err := messages.DecodeFrame(a, b)
	if err != nil {
		t.Fatal(err)
	}
	decrypted, err := encrypted.Decrypt(a, flipping{})
	if err != nil || decrypted.Cause != f.Cause || decrypted.Trace != f.Trace {
		t.Errorf("got %+v, error %v, want %+v", decrypted, err, f)
	}
}

// flipping is a Cipher that flips all bits.
type flipping struct{}

func (flipping) Encrypt(plain, _ []byte) []byte {
	b := make([]byte, len(plain))
	for i, c := range plain {
		b[i] = ^c
	}
	return b
}

func (f flipping) Decrypt(encrypted, context []byte) ([]byte, error) {
	return f.Encrypt(encrypted, context), nil
}
