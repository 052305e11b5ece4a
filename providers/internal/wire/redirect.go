package wire

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/reprise-dev/reprise/providers"
)

// withoutRedirects returns a copy of c that fails where the server redirects. Following it
// would send the key and the history to where the server says, or take what a GET finds
// there for the model's answer.
func withoutRedirects(c *http.Client) *http.Client {
	own := *c
	own.Transport = stationary{cmp.Or(c.Transport, http.DefaultTransport)}
	return &own
}

// stationary is a transport that returns a redirect as an error. A client that got it as an
// answer would read where it leads before it asks whether to follow.
type stationary struct{ http.RoundTripper }

// RoundTrip sends a request.
func (s stationary) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.RoundTripper.RoundTrip(r)
	if err != nil || resp.StatusCode < 300 || resp.StatusCode > 399 || resp.StatusCode == http.StatusNotModified {
		return resp, err
	}
	_ = resp.Body.Close()
	return nil, redirected(r.URL, resp)
}

// maxTarget is the most bytes that are shown of where a redirect leads.
const maxTarget = 200

// redirected returns the error of a redirect. It names where to without what may be secret:
// user, query and fragment, and of another server the path.
func redirected(from *url.URL, resp *http.Response) *providers.Error {
	target := "no address that can be read"
	if to, err := from.Parse(resp.Header.Get("Location")); err == nil && resp.Header.Get("Location") != "" && to.Host != "" {
		shown := url.URL{Scheme: to.Scheme, Host: to.Host}
		if to.Host == from.Host {
			shown.Path = to.Path
		}
		if len(shown.String()) > maxTarget { // it is not cut: a part of a key would not be known as one
			shown.Path = ""
		}
		if target = shown.String(); len(target) > maxTarget {
			target = target[:maxTarget] + "…"
		}
	}
	return &providers.Error{
		Kind: providers.Redirected, Status: resp.StatusCode,
		Message: "the server redirects to " + target + ": redirects are not followed, for the key and the history would be sent there; set base_url to the address of the model server",
	}
}
