package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	shortestSecret = 12
	hidden         = "[hidden key]"
)

// schemes are those of the header Authorization.
var schemes = map[string]bool{"bearer": true, "basic": true, "token": true, "apikey": true}

var (
	lowerEscapes = strings.NewReplacer("=", `\u003d`, "&", `\u0026`, "<", `\u003c`, ">", `\u003e`, "'", `\u0027`, "+", `\u002b`)
	upperEscapes = strings.NewReplacer("=", `\u003D`, "&", `\u0026`, "<", `\u003C`, ">", `\u003E`, "'", `\u0027`, "+", `\u002B`)
)

// Scrubber takes secrets out of what a server says: in each form of them, longest first, so that
// none is left in part because it begins with another.
type Scrubber []string

// NewScrubber hides these texts.
func NewScrubber(secrets ...string) Scrubber {
	var s Scrubber
	for _, secret := range secrets {
		s = append(s, secret,
			lowerEscapes.Replace(secret), upperEscapes.Replace(secret), // as JSON for web pages writes it
			strings.ReplaceAll(secret, "/", `\/`), // as JSON may write it
			url.QueryEscape(secret))               // as an error shows an address
	}
	s = slices.DeleteFunc(s, func(form string) bool { return form == "" })
	slices.SortFunc(s, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(s)
}

// newScrubber hides a key and the secrets of header and query.
func newScrubber(key string, header http.Header, query url.Values) Scrubber {
	secrets := Secrets(header, query)
	if key = plainSecret("", key); len(key) >= shortestSecret {
		secrets = append(secrets, key)
	}
	return NewScrubber(secrets...)
}

// Secrets returns the values of headers and query parameters whose names are those of secrets,
// without the scheme of an authorization, and those of cookies one by one. Short ones are none.
func Secrets(header http.Header, query url.Values) (secrets []string) {
	add := func(name, value string) {
		if value = plainSecret(name, value); len(value) >= shortestSecret {
			secrets = append(secrets, value)
		}
	}
	for _, members := range []map[string][]string{header, query} {
		for name, values := range members {
			name = strings.ToLower(name)
			if !secretName(name) {
				continue
			}
			for _, value := range values {
				add(name, value)
				for cookie := range strings.SplitSeq(value, ";") {
					if _, value, ok := strings.Cut(cookie, "="); ok && name == "cookie" {
						add(name, value)
					}
				}
			}
		}
	}
	return secrets
}

// plainSecret returns the value of a header without its scheme.
func plainSecret(name, value string) string {
	value = strings.TrimSpace(value)
	if scheme, rest, ok := strings.Cut(value, " "); ok && (schemes[strings.ToLower(scheme)] || strings.HasSuffix(name, "authorization")) {
		return strings.TrimSpace(rest)
	}
	return value
}

func secretName(name string) bool {
	for _, word := range [...]string{"key", "token", "secret", "auth", "cookie", "sig", "code", "pass", "credential", "session"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// Text returns t without secrets.
func (s Scrubber) Text(t string) string {
	for _, secret := range s {
		t = strings.ReplaceAll(t, secret, hidden)
	}
	return t
}

// JSON returns a copy of b, which is JSON, without secrets, however its strings are escaped, and
// those in them that are JSON. It is none any more if a number was a secret.
func (s Scrubber) JSON(b []byte) []byte {
	b = []byte(s.Text(string(b)))
	if len(s) == 0 || bytes.IndexByte(b, '\\') < 0 || !json.Valid(b) {
		return b
	}
	var shown []byte
	begin := 0
	for i := 0; i < len(b); i++ {
		if b[i] != '"' {
			continue
		}
		end := SkipString(b, i)
		if scrubbed := s.quoted(b[i:end]); scrubbed != nil {
			shown = append(append(shown, b[begin:i]...), scrubbed...)
			begin = end
		}
		i = end - 1
	}
	return append(shown, b[begin:]...)
}

// quoted returns a JSON string without secrets; nil if it has none.
func (s Scrubber) quoted(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return nil
	}
	text := Text(raw)
	scrubbed := s.Text(text)
	if json.Valid([]byte(scrubbed)) {
		scrubbed = string(s.JSON([]byte(scrubbed)))
	}
	if scrubbed == text {
		return nil
	}
	return AppendString(nil, scrubbed)
}
