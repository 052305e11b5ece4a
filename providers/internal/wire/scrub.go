package wire

import (
	"net/http"
	"net/url"
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

// Scrubber takes secrets out of what a server says.
type Scrubber []string

// newScrubber hides a key and the values of headers and query parameters whose names are those
// of secrets.
func newScrubber(key string, header http.Header, query url.Values) Scrubber {
	var s Scrubber
	add := func(secret string) {
		secret = strings.TrimSpace(secret)
		if scheme, rest, ok := strings.Cut(secret, " "); ok && schemes[strings.ToLower(scheme)] {
			secret = strings.TrimSpace(rest)
		}
		if len(secret) < shortestSecret {
			return
		}
		s = append(s, secret)
		for _, escapes := range []*strings.Replacer{lowerEscapes, upperEscapes} {
			if escaped := escapes.Replace(secret); escaped != secret {
				s = append(s, escaped) // as JSON for web pages writes it
			}
		}
		if escaped := strings.ReplaceAll(secret, "/", `\/`); escaped != secret {
			s = append(s, escaped) // as JSON may write it
		}
		if escaped := url.QueryEscape(secret); escaped != secret {
			s = append(s, escaped) // as an error shows an address
		}
	}
	add(key)
	for _, members := range []map[string][]string{header, query} {
		for name, values := range members {
			if secretName(strings.ToLower(name)) {
				add(strings.Join(values, ","))
			}
		}
	}
	return s
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
