package messages_test

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// A56
func TestRedacted(t *testing.T) {
	for servers, want := range map[string]string{
		"":                                   "",
		"n1,n2,n3":                           "n1,n2,n3",
		"n1, n2":                             "n1,n2",
		"nats://a:4222,nats://b:4222":        "nats://a:4222,nats://b:4222",
		"nats://u:hush@a:4222,nats://b":      "nats://xxxxx@a:4222,nats://b",
		"hush@a":                             "xxxxx@a",
		"nats://hu%2Csh@a,tls://hu:sh@[::1]": "nats://xxxxx@a,tls://xxxxx@[::1]",
		"wss://u:hush@b:42/":                 "wss://xxxxx@b:42",
	} {
		if got := messages.Redacted(servers); got != want {
			t.Errorf("%q: got %q, want %q", servers, got, want)
		}
		if err := messages.CheckServers(servers); err != nil {
			t.Errorf("CheckServers(%q): got error %v, want none", servers, err)
		}
	}
}

// An ambiguous server address is refused, and no part of it is shown. A56
func TestUnreadableServers(t *testing.T) {
	for _, servers := range []string{
		"nats://hush,hush@a", "u:hush,hush@a", "hush@a,hush@b", // a login with a comma, or two addresses
		"nats://u:hush@hush@a", "nats://u:hush,hush@hush,hush@a", "nats://u:hush,a://hush@a",
		"nats://hush/hush@a", "nats://u:12/hush@a", "nats://u:12#hush@a", "nats://hush?hush@a", "nats://u:hush hush@a", "nats://u:%zzhush@a",
		"nats://u:hush", "u:hush", "u:hush%40a:1", // the @ forgotten, or escaped
		"nats://a?user=u&pass=hush", "nats://u:p@a/hush", "hush://a",
	} {
		err := messages.CheckServers(servers)
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("CheckServers(%q): got error %v, want one without the password", servers, err)
		}
		if got := messages.Redacted(servers); strings.Contains(got, "hush") {
			t.Errorf("Redacted(%q): got %q, want no password", servers, got)
		}
	}
}
