// Package wire carries requests to model servers and their answers back, the same for every
// API that they speak.
//
// # Guarantees
//
//   - Key and history go to the address that they are meant for: a redirect is an error.
//   - Secrets are in no error.
//   - The memory for an answer is claimed as it is read; one of more than 64 MiB is an error.
package wire

import (
	"net/http"
	"net/url"
)

// maxHeader is the most bytes of an answer's header; Go's own limit is forty times as much.
const maxHeader = 256 << 10

// Endpoint is how the requests to one server are made. Make one with [NewEndpoint]. Safe for
// concurrent use.
type Endpoint struct {
	client *http.Client
	header http.Header
	query  url.Values
	// Scrub hides the secrets of the requests.
	Scrub Scrubber
}

// NewEndpoint returns an endpoint whose requests have the header and the query. A nil client
// is one without a time limit that keeps 256 idle connections. No client follows redirects.
func NewEndpoint(client *http.Client, key string, header http.Header, query url.Values) *Endpoint {
	if client == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 256
		t.MaxResponseHeaderBytes = maxHeader
		client = &http.Client{Transport: t}
	}
	return &Endpoint{client: withoutRedirects(client), header: header, query: query, Scrub: newScrubber(key, header, query)}
}
