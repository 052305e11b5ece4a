package messages

import (
	"errors"
	"net/url"
	"strings"
)

// Redacted returns a list of server addresses without what may be secret in them:
// passwords, and users that may be tokens.
func Redacted(servers string) string {
	var list []string
	for _, part := range strings.Split(servers, ",") {
		from := loginFrom(list, part)
		list = append(list[:from], strings.Join(append(list[from:], part), ","))
	}
	for i, server := range list {
		list[i] = redacted(server)
	}
	return strings.Join(list, ",")
}

// loginFrom returns where in list the address begins whose login ends in part: a password
// with commas in it looks like several addresses. It returns the length of list for a part
// that is an address of its own.
func loginFrom(list []string, part string) int {
	if !strings.Contains(part, "@") || strings.Contains(part, "://") {
		return len(list)
	}
	for i := len(list) - 1; i >= 0; i-- {
		if _, rest, found := strings.Cut(list[i], "://"); found {
			if strings.Contains(rest, ":") && !strings.Contains(rest, "@") {
				return i
			}
			break
		}
	}
	return len(list)
}

func redacted(server string) string {
	at := strings.LastIndexByte(server, '@')
	if at < 0 {
		return server
	}
	scheme, _, found := strings.Cut(server, "://")
	if !found {
		return "xxxxx" + server[at:]
	}
	return scheme + "://xxxxx" + server[at:]
}

// errAddress replaces an error that quotes an address, of which any part may be secret.
var errAddress = errors.New("the address cannot be read: write user:password@host:port, and in user and password %XX for everything but letters, digits, - and _")

// RedactedError returns err, met when connecting to servers, without what may be secret
// in their addresses: an error about an address that cannot be parsed quotes it.
func RedactedError(servers string, err error) error {
	var unparsed *url.Error
	if strings.Contains(servers, "@") && errors.As(err, &unparsed) {
		return errAddress
	}
	return err
}
