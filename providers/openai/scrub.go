package openai

import (
	"net/http"
	"strings"
)

const (
	shortestSecret = 12
	hidden         = "[hidden key]"
)

// scrubber takes secrets out of what a server says.
type scrubber []string

func newScrubber(key string, header http.Header) scrubber {
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
	}
	add(key)
	for name, values := range header {
		name = strings.ToLower(name)
		for _, word := range [...]string{"key", "token", "secret", "auth", "cookie"} {
			if strings.Contains(name, word) {
				add(strings.Join(values, ","))
				break
			}
		}
	}
	return s
}

// text is t without secrets.
func (s scrubber) text(t string) string {
	for _, secret := range s {
		t = strings.ReplaceAll(t, secret, hidden)
	}
	return t
}
