package embedded

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Login is what a server wants of everyone who connects: a user with a password, or a
// token. The zero value wants nothing. It prints, and is encoded, without its secrets.
type Login struct {
	User, Password string
	// Token stands alone: User and Password are empty then.
	Token string
}

// MaxLogin is the most bytes of a login. The server reads a client's first line of 4 KiB,
// and the login is in it.
const MaxLogin = 1 << 10

// ParseLogin reads user:password, or a token, which has no colon. Space around it is left
// out. The error shows nothing of the text.
func ParseLogin(text string) (Login, error) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > MaxLogin || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return Login{}, fmt.Errorf("a login is one line of at most %d bytes without spaces: user:password, or a token", MaxLogin)
	}
	user, password, both := strings.Cut(text, ":")
	switch {
	case !both && !hashed(text):
		return Login{Token: text}, nil
	case hashed(text), hashed(password):
		return Login{}, errors.New("a login that begins as bcrypt hashes do is taken for one: write the password itself")
	case user == "", password == "":
		return Login{}, errors.New("a login with a colon is user:password, and neither is empty")
	}
	return Login{User: user, Password: password}, nil
}

// hashed reports whether the server takes a secret for a hash.
func hashed(secret string) bool { return strings.HasPrefix(secret, "$2") }

// Text returns the login as ParseLogin reads it; empty for the zero value.
func (l Login) Text() string {
	if l.User == "" {
		return l.Token
	}
	return l.User + ":" + l.Password
}

// URL returns a server's URL with the login in it, as NATS clients take it: with commas,
// which would end it, and all else escaped.
func (l Login) URL(server string) string {
	scheme, host, found := strings.Cut(server, "://")
	if !found {
		scheme, host = "nats", server
	}
	switch {
	case l.User != "":
		host = url.QueryEscape(l.User) + ":" + url.QueryEscape(l.Password) + "@" + host
	case l.Token != "":
		host = url.QueryEscape(l.Token) + "@" + host
	}
	return scheme + "://" + host
}

// String shows no secret.
func (l Login) String() string {
	if l == (Login{}) {
		return "none"
	}
	return "xxxxx"
}

// MarshalText shows no secret, in JSON and in logs.
func (l Login) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// GoString shows no secret.
func (l Login) GoString() string { return "embedded.Login(" + l.String() + ")" }

// apply has the server want the login.
func (l Login) apply(opts *server.Options) {
	opts.Username, opts.Password, opts.Authorization = l.User, l.Password, l.Token
}

// options log a connection in.
func (l Login) options() []nats.Option {
	switch {
	case l.User != "":
		return []nats.Option{nats.UserInfo(l.User, l.Password)}
	case l.Token != "":
		return []nats.Option{nats.Token(l.Token)}
	}
	return nil
}

// ErrExposed is wrapped by the error of [Start] for a server that would let everyone on
// the network do everything.
var ErrExposed = errors.New("without a login everyone who reaches this address could read, approve and delete everything")

// Exposed reports whether the server requires no login and listens on an address that other
// machines may reach.
func (s *Server) Exposed() bool { return s.exposed }

// mayListen returns why the server must not listen on its address; nil if it may.
func (c Config) mayListen() error {
	if c.DontListen || c.Insecure || c.Login != (Login{}) || loopback(c.Host) {
		return nil
	}
	return fmt.Errorf("not listening on %s: %w; set a login with --auth FILE or REPRISE_AUTH, listen on 127.0.0.1, or give --insecure if something else guards the address", net.JoinHostPort(c.Host, fmt.Sprint(max(c.Port, 0))), ErrExposed)
}

// loopback reports whether only this machine reaches a host to listen on.
func loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
