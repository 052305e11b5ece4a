package openai

import (
	"net/http"

	"github.com/reprise-dev/reprise/providers"
)

// withoutRedirects returns a copy of c that returns a redirect as the answer that it is.
// Following it would send the key and the history to where the server says, or take
// what a GET finds there for the model's answer.
func withoutRedirects(c *http.Client) *http.Client {
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// redirected returns the error of a redirect; nil if resp is none. It names where to
// without user and query, which may be secret.
func redirected(resp *http.Response) *providers.Error {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	to, err := resp.Location()
	if err != nil {
		return nil // it says not where to
	}
	to.User, to.RawQuery, to.Fragment = nil, "", ""
	return &providers.Error{
		Kind: providers.Redirected, Status: resp.StatusCode,
		Message: "the server redirects to " + to.String() + ", and redirects are not followed: the key and the history would be sent to " + to.Host +
			"; if that is the model server, set base_url to its address, else correct base_url",
	}
}
