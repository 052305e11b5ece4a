package messages_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// A56
func TestRedacted(t *testing.T) {
	for servers, want := range map[string]string{
		"":                                     "",
		"n1,n2,n3":                             "n1,n2,n3",
		"nats://a:4222,nats://b:4222":          "nats://a:4222,nats://b:4222",
		"nats://u:hush@a:4222,nats://b":        "nats://xxxxx@a:4222,nats://b",
		"hush@a,u:hush@b":                      "xxxxx@a,xxxxx@b",
		"nats://u:hu@sh@a":                     "nats://xxxxx@a",
		"nats://u:hush,hush,hush@a,nats://b":   "nats://xxxxx@a,nats://b",
		"nats://n1,nats://u:hush,hush@a":       "nats://n1,nats://xxxxx@a",
		"nats://u:hush/hush@a,tls://hush@b:42": "nats://xxxxx@a,tls://xxxxx@b:42",
	} {
		if got := messages.Redacted(servers); got != want {
			t.Errorf("%q: got %q, want %q", servers, got, want)
		}
	}
}

// A56
func TestRedactedError(t *testing.T) {
	for _, server := range []string{"nats://u:hu sh@a", "nats://u:%zzhush@a", "nats://u:hush#hush@a", "nats://u:hush/hush@a"} {
		_, err := url.Parse(server)
		if err == nil {
			t.Fatalf("%s is an address", server)
		}
		if got := messages.RedactedError(server, err); strings.Contains(got.Error(), "sh") || strings.Contains(got.Error(), "%zz") {
			t.Errorf("%s: %v", server, got)
		}
	}
	refused := errors.New("connection refused")
	if got := messages.RedactedError("nats://u:hush@a", refused); got != refused {
		t.Errorf("another error became %v", got)
	}
}
