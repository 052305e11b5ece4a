package messages

import (
	"strings"
	"unicode"
)

// HeaderPerson, on an input, a command or an answer to a question, is the name of the
// person who asks for it. Nothing proves it.
const HeaderPerson = "Reprise-Person"

// MaxPerson is the most bytes of a person's name that are kept.
const MaxPerson = 200

// Person is who asked for what a frame records.
type Person struct {
	Name string `json:"name"`
	// Claimed: nothing proves the name but its sender's word.
	Claimed bool `json:"claimed,omitempty"`
	// Account is the sender's NATS account, as its server says. Empty: it did not.
	Account string `json:"account,omitempty"`
	// Endpoint is where it came in: in, ctl, prompt, client, or peer for what the
	// agent above has passed down.
	Endpoint string `json:"endpoint,omitempty"`
}

// Person is who asked for it. Nil: no one is named, as for effects.
func (c Cause) Person() *Person {
	if c.By == "" {
		return nil
	}
	return &Person{Name: c.By, Claimed: !c.Authenticated, Account: c.Account, Endpoint: c.Door}
}

// From returns the cause as asked for by p, at the cause's own endpoint. Nil: no one is
// named.
func (c Cause) From(p *Person) Cause {
	if p == nil {
		c.By, c.Authenticated, c.Account = "", false, ""
		return c
	}
	c.By, c.Authenticated, c.Account = p.Name, !p.Claimed, p.Account
	return c
}

// ClaimedBy is a person as a sender names them: on one line, of printable characters, and
// not longer than MaxPerson bytes. Nil: the name is empty.
func ClaimedBy(name string) *Person {
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(name, "")))
	if len(name) > MaxPerson {
		name = strings.ToValidUTF8(name[:MaxPerson], "")
	}
	if name == "" {
		return nil
	}
	return &Person{Name: name, Claimed: true}
}
