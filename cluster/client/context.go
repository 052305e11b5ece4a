package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
)

// natsContext is a context file of the nats command line tool, as far as it
// means something here.
type natsContext struct {
	URL         string `json:"url"`
	Token       string `json:"token"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Creds       string `json:"creds"`
	NKey        string `json:"nkey"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	CA          string `json:"ca"`
	UserJWT     string `json:"user_jwt"`
	UserSeed    string `json:"user_seed"`
	InboxPrefix string `json:"inbox_prefix"`
	TLSFirst    bool   `json:"tls_first"`

	// What follows changes whom a connection reaches and is not understood.
	NSC             string `json:"nsc"`
	JetStreamDomain string `json:"jetstream_domain"`
	JetStreamPrefix string `json:"jetstream_api_prefix"`
	SocksProxy      string `json:"socks_proxy"`
}

// readContext reads a context by name from where the nats tool keeps them.
func readContext(name string) (natsContext, error) {
	var c natsContext
	if name != filepath.Base(name) || name == "." || name == ".." {
		return c, fmt.Errorf("NATS context %q: give a name as `nats context ls` shows it", name)
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return c, fmt.Errorf("NATS context %s: %w", name, err)
		}
		dir = filepath.Join(home, ".config")
	}
	path := filepath.Join(dir, "nats", "context", name+".json")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("NATS context %s: there is no %s; `nats context ls` shows those that exist", name, path)
	}
	if err != nil {
		return c, fmt.Errorf("NATS context %s: %w", name, err)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("NATS context %s: %s is not JSON: %w", name, path, err)
	}
	return c, nil
}

// options is what a connection under the context needs.
func (c natsContext) options() ([]nats.Option, error) {
	for field, value := range map[string]string{
		"nsc": c.NSC, "jetstream_domain": c.JetStreamDomain, "jetstream_api_prefix": c.JetStreamPrefix, "socks_proxy": c.SocksProxy,
	} {
		if value != "" {
			return nil, fmt.Errorf("its field %s is not supported: use --nats with --creds or --nkey", field)
		}
	}
	options, err := c.login()
	if err != nil {
		return nil, err
	}
	if c.CA != "" {
		options = append(options, nats.RootCAs(home(c.CA)))
	}
	if c.Cert != "" || c.Key != "" {
		options = append(options, nats.ClientCert(home(c.Cert), home(c.Key)))
	}
	if c.InboxPrefix != "" {
		options = append(options, nats.CustomInboxPrefix(c.InboxPrefix))
	}
	if c.TLSFirst {
		options = append(options, nats.TLSHandshakeFirst())
	}
	return options, nil
}

// login is the one way to log in that the nats tool would take.
func (c natsContext) login() ([]nats.Option, error) {
	switch {
	case c.User != "":
		return []nats.Option{nats.UserInfo(c.User, c.Password)}, nil
	case c.Creds != "":
		return []nats.Option{nats.UserCredentials(home(c.Creds))}, nil
	case c.NKey != "":
		option, err := nats.NkeyOptionFromSeed(home(c.NKey))
		if err != nil {
			return nil, fmt.Errorf("the nkey in %s cannot be used: %w", c.NKey, err)
		}
		return []nats.Option{option}, nil
	case c.UserJWT != "":
		return []nats.Option{nats.UserJWTAndSeed(c.UserJWT, c.UserSeed)}, nil
	case c.Token != "":
		return []nats.Option{nats.Token(c.Token)}, nil
	}
	return nil, nil
}

// home is a path with ~ at its head replaced.
func home(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	dir, err := os.UserHomeDir()
	if !ok || err != nil {
		return path
	}
	return filepath.Join(dir, rest)
}
