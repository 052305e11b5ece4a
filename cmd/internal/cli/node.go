package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers/memory"
)

// node runs a node until a signal stops it.
type node struct {
	app *app
	cfg cluster.Config
	// file is what the agents come from; one without content for the demo agents.
	file *config.Config
	// mode is dev or serve.
	mode string
	// httpGiven reports whether the user chose the HTTP address: it must be had then.
	httpGiven bool
	// ready prints what to do now.
	ready func(*cluster.Node, nodeStatus)
}

// run starts the node, reports whether it is ready and waits for SIGINT or SIGTERM;
// then it stops in order. A second signal ends the process at once.
func (n *node) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitFailed)
	}()
	if isTerminal(n.app.err) {
		n.app.note("starting …")
	}
	if n.cfg.PayloadMemory == 0 {
		n.cfg.PayloadMemory = memory.Default() // of what the process may use, and not of what tune leaves
	}
	if n.embedded() {
		Tune(n.cfg.Sync)
	} else {
		Tune("")
	}
	stopTools, err := n.serveTools(ctx)
	if err != nil {
		return err
	}
	defer stopTools()
	running, err := n.start(ctx)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil
	case errors.Is(err, natslog.ErrConnect) && client.Advice(err) != "":
		return fail(client.Advice(err), "%v", err)
	case err != nil:
		return err
	}
	forget, err := n.announce(running)
	if err == nil {
		select {
		case <-running.Ended():
			err = running.Err()
		case <-ctx.Done():
			n.app.note("stopping; running turns continue on another node, or at the next start")
		}
	}
	forget()
	if closing := running.Close(); err == nil {
		err = closing
	}
	return err
}

// start starts the node, without HTTP if its usual address is taken.
func (n *node) start(ctx context.Context) (*cluster.Node, error) {
	running, err := cluster.Start(ctx, n.cfg)
	if !errors.Is(err, cluster.ErrHTTP) || n.httpGiven {
		return running, err
	}
	n.app.note("%s is in use: health and metrics are not served; --http chooses another address, or off", n.cfg.HTTP)
	n.cfg.HTTP = ""
	return cluster.Start(ctx, n.cfg)
}

// usualHTTP is where a node serves health and metrics.
const usualHTTP = "127.0.0.1:8080"

// httpFlags are the flags of a node's HTTP address.
type httpFlags struct {
	address string
	hosts   []string
}

func (f *httpFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.hosts, "http-host", nil, "host `NAMES` of --http, beside localhost; requests for other names are refused, except for health and readiness (default: none on a loopback address, any elsewhere)")
	cmd.Flags().StringVar(&f.address, "http", usualHTTP, "`ADDRESS` of health, readiness and metrics: host:port, port 0 for any free one, or off; if the flag is not given and the port is in use, they are not served")
}

// serves takes over the flags of HTTP; given reports whether --http is one of them.
func (n *node) serves(f httpFlags, given bool) error {
	n.cfg.HTTP, n.cfg.HTTPHosts, n.httpGiven = f.address, f.hosts, given
	for _, host := range f.hosts {
		if host == "" || strings.ContainsAny(host, "/: ") && net.ParseIP(host) == nil {
			return usage("--http-host %q: write a name or an IP address, without scheme and port", host)
		}
	}
	if f.address == "off" {
		n.cfg.HTTP = ""
		return nil
	}
	if _, port, err := net.SplitHostPort(f.address); err != nil || port == "" {
		return usage("--http %q: write host:port, such as %s, or off", f.address, usualHTTP)
	}
	return nil
}

// nameFlag adds to cmd the flag --name.
func nameFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "name", "", "`NAME` of this node in nodes, drain and its log (default: the name of the machine)")
}

// announce writes the address file and reports whether the node is ready.
func (n *node) announce(running *cluster.Node) (forget func(), err error) {
	forget = func() {}
	if n.embedded() {
		if forget, err = n.leaveAddress(reachable(running.URL())); err != nil {
			return forget, fmt.Errorf("write the node's address for other commands: %w", err)
		}
	}
	s := n.status(running) // one look, so that all that is said of it fits
	n.app.logging.node = s.Node
	if n.app.json() {
		return forget, n.app.object(s)
	}
	if log := n.app.records(n.app.out); log != nil {
		log.Info("ready", "mode", s.Mode, "name", running.Name(), "nats", s.NATS, "http", s.HTTP, "data", s.Data, "sync", s.Sync,
			"encrypted", s.Encrypted, "kinds", s.Kinds, "agents", s.Agents, "partitions", s.Partitions, "version", s.Version)
	} else {
		n.app.printf("%s, node %s (%s)\n", n.readyLine(s), projections.Printable(running.Name(), 64), s.Node)
	}
	n.ready(running, s)
	return forget, nil
}

// leaveAddress writes how other commands reach the node. forget removes that; a node that is
// killed leaves it behind, and commands report then that the node is gone.
func (n *node) leaveAddress(url string) (forget func(), err error) {
	file := addressFile(n.cfg.Data)
	forget = func() { _, _ = os.Remove(file), os.Remove(loginFile(n.cfg.Data)) }
	if err = leaveLogin(n.cfg.Data, n.cfg.Login); err == nil {
		err = whole(file, written(url+"\n"))
	}
	return forget, err
}

func (n *node) embedded() bool { return n.cfg.NATS == "" }

// reachable is a URL that clients of this machine can use where the server
// listens on every address.
func reachable(url string) string {
	return strings.NewReplacer("//0.0.0.0:", "//127.0.0.1:", "//[::]:", "//127.0.0.1:").Replace(url)
}

// nodeStatus is what a node says of itself in JSON when it is ready.
type nodeStatus struct {
	Type       string         `json:"type"`
	Mode       string         `json:"mode"`
	Node       string         `json:"node"`
	NATS       string         `json:"nats"`
	Login      bool           `json:"login,omitempty"`   // the embedded server wants one
	Exposed    bool           `json:"exposed,omitempty"` // it requires none, and other machines may reach it
	HTTP       string         `json:"http"`              // empty: off
	Data       string         `json:"data,omitempty"`
	Sync       string         `json:"sync"`
	Encrypted  bool           `json:"encrypted"`
	Kinds      []string       `json:"kinds"`
	Agents     map[string]int `json:"agents"`
	Partitions int            `json:"partitions"`
	Version    string         `json:"version"`
}

func (n *node) status(running *cluster.Node) nodeStatus {
	s := nodeStatus{
		Type: "ready", Mode: n.mode, Node: running.ID(), NATS: reachable(running.URL()), HTTP: running.HTTP(), Sync: running.Sync(), Encrypted: running.Encrypted(),
		Agents: running.Agents(), Partitions: running.Partitions(), Version: versionText(), Kinds: []string{},
	}
	if n.embedded() {
		s.Data, s.Login, s.Exposed = n.cfg.Data, n.cfg.Login != (embedded.Login{}), running.Exposed()
	}
	for _, d := range n.cfg.Agents {
		s.Kinds = append(s.Kinds, d.Kind)
	}
	return s
}

// readyLine says everything about the node in one line.
func (n *node) readyLine(s nodeStatus) string {
	parts := []string{"NATS " + s.NATS}
	switch {
	case s.Login:
		parts[0] += " with a login"
	case s.Exposed:
		parts[0] += " without a login, open to all who reach this address"
	}
	if s.HTTP != "" {
		parts = append(parts, "HTTP "+s.HTTP)
	}
	if s.Data != "" {
		parts = append(parts, "data "+s.Data)
	}
	known := 0
	for _, count := range s.Agents {
		known += count
	}
	encryption := "encryption off"
	if s.Encrypted {
		encryption = "encryption on"
	}
	parts = append(parts, "sync "+s.Sync, encryption, english.Plural(known, "agent", "")+" known")
	if c := s.Agents["running"]; c > 0 {
		parts = append(parts, fmt.Sprintf("%d being recovered", c))
	}
	if c := s.Agents["paused"]; c > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting for a person", c))
	}
	if s.Partitions < messages.Partitions {
		parts = append(parts, fmt.Sprintf("%d of %d partitions", s.Partitions, messages.Partitions))
	}
	return fmt.Sprintf("reprise %s is ready: %s", n.mode, strings.Join(parts, ", "))
}

// syncMode checks the flag --sync.
func syncMode(mode string) error {
	if mode != "always" && mode != "relaxed" {
		return usage("--sync %q: write always (what is acknowledged is on disk) or relaxed (within a second)", mode)
	}
	return nil
}
