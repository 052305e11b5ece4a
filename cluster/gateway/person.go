package gateway

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// requestInfo is the header by which a server names the sender of a request that it brings
// from another account, if the import of the service shares that.
const requestInfo = "Nats-Request-Info"

// serverReply begins the reply subjects of such requests. A server takes none from a client,
// so what has one has the server's headers.
const serverReply = "_R_."

// sender is a request's sender as a server describes it.
type sender struct {
	Kind    string `json:"kind"`
	Account string `json:"acc"`
	User    string `json:"user"`
	JWT     string `json:"jwt"`
	Issuer  string `json:"issuer_key"`
}

// personOf is who sent a request, as its server names them, else its headers. Nil: they
// name no one.
func personOf(r *nats.Msg) *messages.Person {
	p := messages.ClaimedBy(r.Header.Get(messages.HeaderPerson))
	var s sender
	if !strings.HasPrefix(r.Reply, serverReply) || json.Unmarshal([]byte(r.Header.Get(requestInfo)), &s) != nil {
		return p
	}
	if proven := messages.ClaimedBy(s.proven()); proven != nil {
		p, proven.Claimed = proven, false
	} else if user := messages.ClaimedBy(s.User); user != nil {
		p = user
	}
	if p != nil {
		p.Account = s.Account
	}
	return p
}

// proven is the user whose key the server has checked; empty: it is none. The name of any
// other user is not: nats-server 2.15.2 shows what a client says of itself beside its
// password (an nkey) in the place of the user that it has checked.
func (s sender) proven() string {
	if s.Kind != "Client" { // of a leaf node: many may be behind it
		return ""
	}
	const key = 56 // characters of a public key; an account of a configuration file has a name
	_, rest, _ := strings.Cut(s.JWT, ".")
	claims, _, _ := strings.Cut(rest, ".")
	b, err := base64.RawURLEncoding.DecodeString(claims)
	var user struct {
		Key string `json:"sub"`
	}
	if len(s.Issuer) != key || s.Issuer[0] != 'A' || err != nil || json.Unmarshal(b, &user) != nil {
		return ""
	}
	return user.Key
}
