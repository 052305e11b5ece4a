package wire

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
)

// The forms of a secret that JSON may have, and a secret that begins with another.
func TestScrubber(t *testing.T) {
	const secret = `abcdef+ghijkl/mnopqr==`
	for _, c := range []struct{ json, want string }{
		{`{"a":"b\n"}`, `{"a":"b\n"}`},
		{`{"a":"abcdef+ghijkl/mnopqr=="}`, `{"a":"[hidden key]"}`},
		{`{"a":"x \u0061bcdef\u002Bghijkl\/mnopqr=\u003d\n","b":"\u003c"}`, `{"a":"x [hidden key]\n","b":"\u003c"}`},
		{`["abcdef+ghijkl\/mnopqr=="]`, `["[hidden key]"]`},
		{`"abcdef%2Bghijkl%2Fmnopqr%3D%3D"`, `"[hidden key]"`},
		{`{"arguments":"{\"a\":\"abcdef\\u002bghijkl\\/mnopqr==\"}"}`, `{"arguments":"{\"a\":\"[hidden key]\"}"}`},
		{`{"abcdef\u002bghijkl\/mnopqr==":[{}]}`, `{"[hidden key]":[{}]}`},
		{`{"a":"first-key-12345-longer-6789 first-key-12345"}`, `{"a":"[hidden key] [hidden key]"}`},
		{`{"a":123456789012345,"b":"\n"}`, `{"a":[hidden key],"b":"\n"}`},
	} {
		s := NewScrubber(secret, "first-key-12345", "first-key-12345-longer-6789", "", "123456789012345")
		if got := string(s.JSON([]byte(c.json))); got != c.want {
			t.Errorf("%s becomes %s, want %s", c.json, got, c.want)
		}
	}
}

// What of a header and a query is secret.
func TestSecrets(t *testing.T) {
	header := http.Header{
		"Content-Type": {"application/json"}, "X-Team": {"example-corporation"}, "X-Key": {"short", "key-of-the-team"},
		"Authorization": {"Negotiate negotiated-key"}, "X-Token": {"Token token-of-the-team", "two words of a token"},
		"Cookie": {"a=1; session=session-of-the-team"},
	}
	got := Secrets(header, url.Values{"api-version": {"2024-10-21-preview"}, "sig": {"signature-of-it"}})
	slices.Sort(got)
	want := []string{"a=1; session=session-of-the-team", "key-of-the-team", "negotiated-key", "session-of-the-team", "signature-of-it", "token-of-the-team", "two words of a token"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
