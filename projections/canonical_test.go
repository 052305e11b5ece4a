package projections

import "testing"

func TestCanonicalJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"b":[1.0,10e-1,0.0],"a":null}`: `{"a":null,"b":[1e0,1e0,0]}`,
		` { "a" : -120 } `:               `{"a":-12e1}`,
		`not json`:                       `not json`,
		``:                               ``,
		`12345678901234567890.10`:        `123456789012345678901e-1`,
	} {
		if got := CanonicalJSON(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
