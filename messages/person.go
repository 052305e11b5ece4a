package messages

import (
	"strings"
	"unicode"
)

// Person is the person whose command a frame records.
type Person struct {
	// Name is the name of the person.
	Name string `json:"name"`
	// Claimed reports whether the name is only claimed by the sender, not authenticated.
	Claimed bool `json:"claimed,omitempty"`
	// Account is the sender's NATS account, as its server reports it. Empty: unknown.
	Account string `json:"account,omitempty"`
	// Endpoint is where the command was received: `peer` for a decision that a parent has
	// forwarded.
	Endpoint Endpoint `json:"endpoint,omitempty"`
}

// Person returns the person who asked. Nil: no person is named, as for effects.
func (c Cause) Person() *Person {
	if c.By == "" {
		return nil
	}
	return &Person{Name: c.By, Claimed: !c.Authenticated, Account: c.Account, Endpoint: c.Endpoint}
}

// From returns the cause with p as the person who asked. Nil: no person is named.
func (c Cause) From(p *Person) Cause {
	if p == nil {
		c.By, c.Authenticated, c.Account = "", false, ""
		return c
	}
	c.By, c.Authenticated, c.Account = p.Name, !p.Claimed, p.Account
	return c
}

// ClaimedBy returns the person that a sender names, reduced to printable characters and
// MaxPerson bytes. Nil: the name is empty.
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
