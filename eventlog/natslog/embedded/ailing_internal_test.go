package embedded

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// What is free when the server starts does not bound what it may store later.
func TestOnlyTheDiskBoundsIt(t *testing.T) {
	s, err := Start(Config{Dir: t.TempDir(), DontListen: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown() })
	if got := s.now().JetStreamConfig().MaxStore; got != maxStore {
		t.Errorf("it stores up to %d bytes, want %d", got, int64(maxStore))
	}
}

// Only what a new start mends is a reason for one.
func TestAiling(t *testing.T) {
	dir := t.TempDir()
	s, err := Start(Config{Dir: dir, DontListen: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown() })
	if err := os.MkdirAll(filepath.Join(dir, "jetstream", "$G", "streams", "BROKEN"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Ailing(); err != nil {
		t.Errorf("a folder that holds no stream: %v", err)
	}
	if err := s.now().DisableJetStream(); err != nil {
		t.Fatal(err)
	}
	if s.Ailing() == nil {
		t.Error("JetStream is switched off, and nothing is told")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := s.Ailing(); err != nil {
		t.Errorf("after a new start: %v", err)
	}
}
