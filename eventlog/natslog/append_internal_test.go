package natslog

import "testing"

// An acknowledgement is read as the server writes it; what looks otherwise is left to the
// decoder, and costs no wrong sequence.
func TestStoredAt(t *testing.T) {
	for answer, want := range map[string]uint64{
		`{"stream":"REPRISE_LOG_3","seq":1}`:                           1,
		`{"stream":"S","seq":18446744073709551615}`:                    18446744073709551615,
		`{"stream":"S","domain":"D","seq":7}`:                          7,
		`{"stream":"S","seq":7,"duplicate": true}`:                     0,
		`{"stream":"S","seq":0}`:                                       0,
		`{"stream":"","seq":7}`:                                        0,
		`{"stream":"S","seq":-7}`:                                      0,
		`{"stream":"S","seq":18446744073709551616}`:                    0,
		`{"stream":"S","seq":7`:                                        0,
		`{"stream":"S"}`:                                               0,
		`{"error":{"code":400,"err_code":10071},"stream":"S","seq":7}`: 0,
		``: 0,
	} {
		if got := storedAt([]byte(answer)); got != want {
			t.Errorf("%s: %d, want %d", answer, got, want)
		}
	}
	ack := []byte(`{"stream":"REPRISE_LOG_3","seq":123456}`)
	if n := testing.AllocsPerRun(100, func() { storedAt(ack) }); n != 0 {
		t.Errorf("reading one allocates %v objects", n)
	}
}
