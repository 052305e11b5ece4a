package embedded_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
)

var quiet = slog.New(slog.DiscardHandler)

func start(t *testing.T, c embedded.Config) *embedded.Server {
	t.Helper()
	c.Logger = quiet
	s, err := embedded.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown() })
	return s
}

func wantRefusal(t *testing.T, c embedded.Config, says ...string) {
	t.Helper()
	c.Logger = quiet
	s, err := embedded.Start(c)
	if err == nil {
		_ = s.Shutdown()
		t.Fatalf("started, want a refusal that says %q", says)
	}
	for _, part := range says {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

func TestKeepsWhatWasStored(t *testing.T) {
	dir, a := t.TempDir(), logtest.Agent("ada")
	var tail eventlog.Position
	for range 2 {
		s := start(t, embedded.Config{Dir: dir, DontListen: true})
		if s.Sync() != embedded.SyncAlways || s.ClientURL() != "" {
			t.Errorf("sync %s, address %q; want always and none", s.Sync(), s.ClientURL())
		}
		nc, err := s.Connect()
		if err != nil {
			t.Fatal(err)
		}
		l, err := natslog.Open(context.Background(), natslog.Config{Conns: []*nats.Conn{nc}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := l.Head(context.Background(), a); err != nil || got != tail {
			t.Fatalf("tail %+v, %v; want %+v", got, err, tail)
		}
		if tail, err = l.Append(context.Background(), logtest.Entry(t, a, tail)); err != nil {
			t.Fatal(err)
		}
		nc.Close()
		for range 2 {
			if err := s.Shutdown(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A server that is started again has its folder, its address and its connections.
func TestRestart(t *testing.T) { // A30
	embeddedtest.Long(t, "a port that is free for a moment")
	dir, a := t.TempDir(), logtest.Agent("ada")
	s := start(t, embedded.Config{Dir: dir})
	url := s.ClientURL()
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	l, err := natslog.Open(t.Context(), natslog.Config{Conns: []*nats.Conn{nc}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	tail, err := l.Append(t.Context(), logtest.Entry(t, a, eventlog.Position{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Ailing(), s.Room()); err != nil {
		t.Errorf("a sound server: %v", err)
	}
	connected := nc.StatusChanged(nats.CONNECTED)
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	<-connected
	got, err := l.Head(t.Context(), a)
	for errors.Is(err, eventlog.ErrUnavailable) && t.Context().Err() == nil { // its streams may not be back at once
		got, err = l.Head(t.Context(), a)
	}
	if err != nil || got != tail {
		t.Errorf("tail %+v, %v; want %+v", got, err, tail)
	}
	if s.ClientURL() != url {
		t.Errorf("it listens at %s, was %s", s.ClientURL(), url)
	}
	if _, err := os.Stat(filepath.Join(dir, "PROBE")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file that looked for room is left: %v", err)
	}
}

func TestListens(t *testing.T) {
	s := start(t, embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed})
	nc, err := natslog.Connect(s.ClientURL(), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	address := strings.TrimPrefix(s.ClientURL(), "nats://")
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := net.LookupPort("tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, embedded.Config{Dir: t.TempDir(), Port: number}, address, "--listen")
}

func TestRefusesFolders(t *testing.T) {
	used := t.TempDir()
	start(t, embedded.Config{Dir: used, DontListen: true})
	file := filepath.Join(t.TempDir(), "file")
	newer, odd := t.TempDir(), t.TempDir()
	for path, content := range map[string]string{
		file: "", filepath.Join(newer, "VERSION"): "2 reprise v9.1.0\n", filepath.Join(odd, "VERSION"): "beta\n",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		dir  string
		says []string
	}{
		"in use":       {used, []string{used, "in use by process"}},
		"a file":       {file, []string{file, "not a folder"}},
		"below a file": {filepath.Join(file, "x"), []string{file}},
		"newer":        {newer, []string{newer, "format 2", "reprise v9.1.0", "up to format 1"}},
		"odd":          {odd, []string{odd, "VERSION", "beta"}},
		"none":         {"", []string{"folder"}},
	} {
		t.Run(what, func(t *testing.T) { wantRefusal(t, embedded.Config{Dir: c.dir, DontListen: true}, c.says...) })
	}
	if _, err := os.Stat(filepath.Join(newer, "jetstream")); err == nil {
		t.Error("the newer folder was touched")
	}
}

func TestRefusesReadOnlyFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("nothing is read-only for root")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, embedded.Config{Dir: dir, DontListen: true}, dir, "may not write")
}

func TestRefusesUnknownSync(t *testing.T) {
	wantRefusal(t, embedded.Config{Dir: t.TempDir(), Sync: "sometimes"}, "sometimes", "always", "relaxed")
}
