// Package mcp provides agents with the tools of servers of the Model Context Protocol: programs that are
// spoken to over standard input and output, and addresses that are spoken to over HTTP.
//
// # Guarantees
//
//   - A server that cannot be started, dies, hangs or refuses fails calls, and nothing else. It is
//     started again when a call wants it, and now and then without one, with pauses that grow.
//   - A call with OnUnknown Pause that may have reached a server which then did not answer fails
//     as a [tool.UnknownError].
//   - A program ends with its [Server], and all that stayed in its process group. When this process is
//     killed, so is the program on Linux. What the program has started, and any program elsewhere,
//     finds its standard input closed then.
//   - Values of headers, the query of an address, and values of variables and of flags of the command
//     with names like those of keys are in no result, no error, no log and no description of a tool.
//     Any other argument of the command is taken for no secret.
//   - No message of a server has more than 16 MiB, nor have its tools together, which are 1,000 at
//     most. While one is read it takes several times its size.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-dev/reprise/providers/internal/process"
)

// Config says where a server is. It has a Command or a URL.
type Config struct {
	// Name names the server in errors and logs.
	Name string
	// Command is the program and its arguments. A bare name is looked up in PATH; a relative
	// path starts at Dir.
	Command []string
	// Dir is where the program runs. Empty: the current directory.
	Dir string
	// Env is added to what the program inherits, as toolbox.CommandConfig has it: NAME=value, or
	// NAME to pass on a variable of this process.
	Env []string
	// URL is where a server is that speaks streamable HTTP. A redirect of it is not followed.
	URL string
	// Headers are sent with each request to URL.
	Headers map[string]string
	// Timeout ends a call that takes longer. Zero: tool.DefaultTimeout.
	Timeout time.Duration
	// Logger receives what an operator must know. Nil: slog.Default.
	Logger *slog.Logger
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// Validate reports what is wrong with c. It does not look for the program; see [Config.Program].
func (c Config) Validate() error {
	switch {
	case c.Name == "":
		return errors.New("an MCP server has no name")
	case (len(c.Command) == 0 || c.Command[0] == "") == (c.URL == ""):
		return fmt.Errorf("MCP server %s: write either a command or a url", c.Name)
	case c.URL == "" && len(c.Headers) > 0:
		return fmt.Errorf("MCP server %s: headers are sent to a url, and it has none", c.Name)
	case c.URL != "" && (len(c.Env) > 0 || c.Dir != ""):
		return fmt.Errorf("MCP server %s: env and dir are for a command, and it has none", c.Name)
	case c.Timeout < 0:
		return fmt.Errorf("MCP server %s: timeout: %s is negative", c.Name, c.Timeout)
	}
	for _, e := range c.Env {
		if name, _, _ := strings.Cut(e, "="); name == "" || strings.ContainsRune(e, 0) {
			return fmt.Errorf("MCP server %s: env: an entry has no name or holds a NUL; write NAME=value, or NAME to pass it on", c.Name)
		}
	}
	for name, value := range c.Headers {
		if !headerName.MatchString(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("MCP server %s: headers: a name or value cannot be sent: it holds a space, a line break or a control character", c.Name)
		}
	}
	return c.validateURL()
}

func (c Config) validateURL() error {
	u, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
		return nil
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("MCP server %s: url is not an http or https address", c.Name)
	case u.User != nil:
		return fmt.Errorf("MCP server %s: url has a user name or password in it: give them as a header", c.Name)
	}
	return nil
}

// Program returns the path of the program, empty for a server with a URL, or why it cannot be run.
func (c Config) Program() (string, error) {
	if len(c.Command) == 0 {
		return "", nil
	}
	return process.Find(c.Dir, c.Command[0])
}

// Server is a connection to a server that is kept alive. Make one with [New]. Safe for
// concurrent use.
type Server struct {
	config Config
	logger *slog.Logger
	hidden *strings.Replacer // in what the server says
	keys   *strings.Replacer // in its schemas, whose other words must stay
	web    *http.Transport
	older  bool // the next attempt speaks an older version of the protocol; for keep alone

	stop    context.CancelFunc
	stopped chan struct{}
	wanted  chan struct{} // holds a value while a call wants a connection
	listed  chan struct{} // holds a value while the tools may have changed

	mu      sync.Mutex
	line    *line         // nil: there is none
	down    error         // why there is none
	tried   chan struct{} // closed when the next attempt to connect has ended
	calls   int           // that run
	silent  bool          // the last call to end had no answer in its time
	tokens  int           // that were given to calls
	shows   map[string]func(string)
	tools   []*sdk.Tool
	changed chan struct{} // closed when there are other tools
}

// New checks the configuration and begins to connect, which continues until Close. The error is
// that of [Config.Validate].
func New(c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	s := &Server{
		config: c, logger: c.Logger.With("server", c.Name), hidden: replacer(secrets(c, false)), keys: replacer(secrets(c, true)), stopped: make(chan struct{}),
		wanted: make(chan struct{}, 1), listed: make(chan struct{}, 1),
		tried: make(chan struct{}), changed: make(chan struct{}), shows: make(map[string]func(string)),
	}
	s.web = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second}
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		s.web = t.Clone()
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	go s.keep(ctx)
	return s, nil
}

// Ready waits until the server's tools are known, or the first attempt to connect has failed; the
// error says why. Later attempts follow by themselves.
func (s *Server) Ready(ctx context.Context) error {
	s.mu.Lock()
	tried, done := s.tried, s.line != nil || s.down != nil
	s.mu.Unlock()
	if !done {
		select {
		case <-tried:
		case <-ctx.Done():
			return fmt.Errorf("MCP server %s: it has not answered yet: %w", s.config.Name, ctx.Err())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

// Close ends the connection, and the program with all that stayed in its process group.
func (s *Server) Close() {
	s.stop()
	<-s.stopped
}

// secrets returns the secrets of a configuration: the values of all headers and query parameters, or only
// of those with names like those of keys.
func secrets(c Config, named bool) (secrets []string) {
	for name, value := range c.Headers {
		if named && !secretName.MatchString(name) {
			continue
		}
		secrets = append(secrets, value)
		_, rest, _ := strings.Cut(value, " ") // behind Bearer
		secrets = append(secrets, rest)
		for _, cookie := range strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ';' }) {
			_, own, _ := strings.Cut(cookie, "=")
			secrets = append(secrets, own)
		}
	}
	if u, err := url.Parse(c.URL); err == nil {
		if !named {
			secrets = append(secrets, u.RawQuery)
		}
		for _, field := range strings.Split(u.RawQuery, "&") {
			name, value, _ := strings.Cut(field, "=")
			if named && !secretName.MatchString(name) {
				continue
			}
			decoded, _ := url.QueryUnescape(value)
			secrets = append(secrets, value, decoded)
		}
	}
	for _, e := range c.Env {
		name, value, given := strings.Cut(e, "=")
		if !given {
			value = os.Getenv(name)
		}
		if secretName.MatchString(name) {
			secrets = append(secrets, value)
		}
	}
	for i, arg := range c.Command {
		flag, value, given := strings.Cut(arg, "=")
		if !given && i+1 < len(c.Command) {
			value = c.Command[i+1]
		}
		if i > 0 && strings.HasPrefix(flag, "-") && secretName.MatchString(flag) {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// replacer hides secrets, also as they are written in JSON. A longer one comes before one that it begins
// with.
func replacer(secrets []string) *strings.Replacer {
	for _, secret := range slices.Clone(secrets) {
		encoded, _ := json.Marshal(secret)
		secrets = append(secrets, string(encoded[1:len(encoded)-1]))
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, secret := range secrets {
		if len(secret) >= 6 { // a shorter one is a word
			pairs = append(pairs, secret, "[hidden]")
		}
	}
	return strings.NewReplacer(pairs...)
}

var secretName = regexp.MustCompile(`(?i)key|token|secret|auth|pass|cookie|credential`)
