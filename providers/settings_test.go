package providers

import (
	"reflect"
	"testing"
)

func TestSettings(t *testing.T) {
	half, seed := float32(0.5), int64(0)
	own, shared := Settings{Seed: &seed, Verbosity: "low"}, Settings{Temperature: &half, Verbosity: "high", Stop: []string{"x"}}
	if got, want := own.Or(shared.Without([]string{"stop", "unknown"})), (Settings{Temperature: &half, Seed: &seed, Verbosity: "low"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := own.Names(), []string{"seed", "verbosity"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if own.Verbosity != "low" || shared.Stop == nil {
		t.Error("the originals have changed")
	}
}
