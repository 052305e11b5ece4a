package embedded

import (
	"log/slog"
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
