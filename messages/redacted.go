package messages

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// errServers quotes nothing of a list that cannot be read: any part of it may be secret.
var errServers = errors.New("the address of the NATS server cannot be read: write nats://user:password@host:port, several with commas between, and in user and password %XX for everything but letters, digits, - and _")

// serverAddress is one address: scheme, login, and the part that may be shown.
var serverAddress = regexp.MustCompile(`^((?:nats|tls|ws|wss)://)?([^\s/?#@,]*@)?((?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])?(?::[0-9]*)?)/?$`)

// CheckServers returns an error, without anything of the text, unless servers is a list of
// addresses that can be read in one way only. A NATS client takes other texts for host
// names, sends them to name servers and quotes them in its errors, though they may be a
// part of a password.
func CheckServers(servers string) error {
	if _, ok := shown(servers); !ok {
		return errServers
	}
	return nil
}

// Redacted returns a list of server addresses without their logins; xxxxx for a list that
// [CheckServers] refuses.
func Redacted(servers string) string {
	text, ok := shown(servers)
	if !ok {
		return "xxxxx"
	}
	return text
}

// shown returns a list of addresses without logins, and whether it can be read.
func shown(servers string) (string, bool) {
	list := strings.Split(servers, ",")
	// A comma in a login looks like the end of an address: where there is one, each
	// address names its scheme.
	schemes := len(list) > 1 && strings.Contains(servers, "@")
	for i, server := range list {
		m := serverAddress.FindStringSubmatch(strings.TrimSpace(server))
		if m == nil || schemes && m[1] == "" {
			return "", false
		}
		if _, err := url.Parse("nats://" + m[2]); err != nil {
			return "", false
		}
		if list[i] = m[1] + m[3]; m[2] != "" {
			list[i] = m[1] + "xxxxx@" + m[3]
		}
	}
	return strings.Join(list, ","), true
}
