package embedded_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

var logins = []embedded.Login{{User: "o,ps", Password: "hush:/@,%+?#hush"}, {Token: "hush@/,hush"}}

// TestLogin holds that a server with a login lets in those who have it, its own connections
// among them, and no others; and that no log shows it.
func TestLogin(t *testing.T) {
	for _, login := range logins {
		var log embeddedtest.Words
		s, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Login: login, Logger: log.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Shutdown() })
		wrong := embedded.Login{User: "ops", Password: "other"}
		for url, let := range map[string]bool{login.URL(s.ClientURL()): true, wrong.URL(s.ClientURL()): false, s.ClientURL(): false} {
			if err := messages.CheckServers(url); err != nil {
				t.Errorf("%v cannot be given to other clients: %v", login, err)
			}
			nc, err := nats.Connect(url, nats.Timeout(time.Minute))
			if let && err != nil || !let && !errors.Is(err, nats.ErrAuthorization) {
				t.Errorf("%s: %v", url, err)
			}
			if nc != nil {
				nc.Close()
			}
		}
		connects(t, s)
		encoded, err := json.Marshal(struct{ Login embedded.Login }{login})
		if err != nil {
			t.Error(err)
		}
		if said := log.String() + fmt.Sprintf("%v %+v %#v %s", login, login, login, encoded); strings.Contains(said, "hush") || strings.Contains(said, "Plaintext") {
			t.Errorf("it says %s", said)
		}
	}
}

func TestLoginAfterRestart(t *testing.T) {
	for _, login := range logins {
		s := start(t, embedded.Config{Dir: t.TempDir(), DontListen: true, Sync: embedded.SyncRelaxed, Login: login})
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		connects(t, s)
	}
}

// connects has the server connect to itself.
func connects(t *testing.T, s *embedded.Server) {
	t.Helper()
	nc, err := s.Connect()
	if err != nil {
		t.Fatalf("its own connection: %v", err)
	}
	nc.Close()
}

func TestExposed(t *testing.T) {
	for _, host := range []string{"0.0.0.0", "::", "192.0.2.1", "example.com"} {
		s, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Host: host, Logger: quiet})
		if err == nil {
			_ = s.Shutdown()
			t.Fatalf("it listens on %s without a login", host)
		}
		if !errors.Is(err, embedded.ErrExposed) || !strings.Contains(err.Error(), "--auth") || !strings.Contains(err.Error(), host) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestParseLogin(t *testing.T) {
	for text, want := range map[string]embedded.Login{
		" ops:a:b\n": {User: "ops", Password: "a:b"}, "t0ken\n": {Token: "t0ken"},
	} {
		got, err := embedded.ParseLogin(text)
		if err != nil || got != want || got.Text() != strings.TrimSpace(text) {
			t.Errorf("%q: got %q, %v", text, got.Text(), err)
		}
	}
	for _, text := range []string{"", " \n", ":hush", "hush:", "hush hush", "a:hush\nb:hush", "a:$2a$hush", "$2a$hush", "hu\x00sh", "\ufeffops:hush", "ops:\xffhush", strings.Repeat("hush", 1000)} {
		if got, err := embedded.ParseLogin(text); err == nil || strings.Contains(err.Error(), "sh") && !strings.Contains(err.Error(), "hashes") {
			t.Errorf("%q: got %q, %v", text, got.Text(), err)
		}
	}
}
