package natslog

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
)

// A read while a stream elects its leader returns an error that asks to try again; an error
// that trying again does not change is returned as it is.
func TestForNow(t *testing.T) {
	electing := &jetstream.APIError{Code: 503, ErrorCode: codeUnavailable}
	for name, c := range map[string]struct {
		err   error
		again bool
	}{
		"electing": {electing, true},
		"silent":   {errNoAnswer, true},
		"gone":     {jetstream.ErrStreamNotFound, false},
	} {
		if err := forNow(c.err); errors.Is(err, eventlog.ErrUnavailable) != c.again || !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	answer := &nats.Msg{Data: []byte(`{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`)}
	if _, err := (place{Seq: 1}).read(answer, "S"); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("a message is read: %v", err)
	}
}

func TestTooOld(t *testing.T) {
	for version, want := range map[string]bool{
		"2.11.9": true, "2.12.0": false, "2.12.0-preview.2": false, "2.15.2": false, "2.9.0": true, "1.4.1": true, "3.0.0": false, "dev": false, "": false,
	} {
		if tooOld(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}
