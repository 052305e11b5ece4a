package providers

import (
	"encoding/json"
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
	one, two := Settings{ExtraBody: map[string]json.RawMessage{"a": []byte("1"), "b": []byte("1")}}, Settings{ExtraBody: map[string]json.RawMessage{"b": []byte("2"), "c": []byte("2")}}
	if got := one.Or(two).ExtraBody; len(got) != 3 || string(got["b"]) != "1" || len(one.ExtraBody)+len(two.ExtraBody) != 4 {
		t.Errorf("the members of both are %s", got)
	}
	if own.Verbosity != "low" || shared.Stop == nil {
		t.Error("the originals have changed")
	}
}
