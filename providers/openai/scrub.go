package openai

import (
	"net/http"
	"net/url"
	"strings"
)

const (
	shortestSecret = 12
	hidden         = "[hidden key]"
)

// scrubber takes secrets out of what a server says.
type scrubber []string

// newScrubber hides a key and the values of headers and query parameters whose names are those
// of secrets.
func newScrubber(key string, header http.Header, query url.Values) scrubber {
	var s scrubber
	add := func(secret string) {
		secret = strings.TrimSpace(strings.TrimPrefix(secret, "Bearer "))
		if len(secret) < shortestSecret {
			return
		}
		s = append(s, secret)
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
	for _, word := range [...]string{"key", "token", "secret", "auth", "cookie", "sig", "code"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// text is t without secrets.
func (s scrubber) text(t string) string {
	for _, secret := range s {
		t = strings.ReplaceAll(t, secret, hidden)
	}
	return t
}
