package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/backup"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// defaultData is where dev and serve keep what they store.
const defaultData = "./.reprise"

// defaultTimeout is how long commands wait that do not continue by themselves.
const defaultTimeout = 30 * time.Second

// remoteFlags say which installation a command talks to.
type remoteFlags struct {
	options client.Options
	data    string
	// chosen reports whether --data was given: it wins over NATS_URL.
	chosen  bool
	timeout time.Duration
}

// connects adds to cmd the flags of a command that talks to a node.
func (a *app) connects(cmd *cobra.Command, timeout time.Duration) *cobra.Command {
	a.serverFlags(cmd)
	f := cmd.PersistentFlags()
	f.StringVar(&a.remote.data, "data", defaultData, "data `FOLDER` of a node on this machine, to find its server, if none is named; if the flag is given, it comes before NATS_URL")
	f.StringVar(&a.remote.options.Person, "person", "", "your `NAME`, for the log of what you change; it is not checked (default: the user of this machine)")
	f.Duration("timeout", timeout, "")
	return waitsFor(cmd, "an answer, or for more of it")
}

// waitsFor says in the help of cmd what --timeout bounds.
func waitsFor(cmd *cobra.Command, what string) *cobra.Command {
	f := cmd.PersistentFlags().Lookup("timeout")
	if f.Usage = "`DURATION` to wait for " + what; f.DefValue == "0s" {
		f.Usage += " (0s: without a limit)"
	}
	return cmd
}

// read takes what differs per command from its flags.
func (r *remoteFlags) read(cmd *cobra.Command) {
	r.chosen = cmd.Flags().Changed("data")
	r.timeout, _ = cmd.Flags().GetDuration("timeout") // 0 where there is no such flag
}

// serverFlags adds to cmd the flags that choose a NATS server. They are persistent for its help
// to list them apart.
func (a *app) serverFlags(cmd *cobra.Command) {
	f, o := cmd.PersistentFlags(), &a.remote.options
	f.StringVar(&o.URL, "nats", "", "`URL` of the NATS server, or several: url,url, each with its own user:password@ if there is a login (default: NATS_URL)")
	f.StringVar(&o.Context, "context", "", "`NAME` of a context of the nats command line tool to log in with")
	f.StringVar(&o.Creds, "creds", "", "`FILE` with NATS credentials")
	f.StringVar(&o.InboxPrefix, "inbox-prefix", "", "`PREFIX` of the subjects of answers, for a user who may read no others: see permissions")
	f.StringVar(&o.NKey, "nkey", "", "`FILE` with the seed of a NATS user's key")
	f.StringVar(&o.CA, "tlsca", "", "`FILE` with the certificates of the authorities that sign the NATS server's certificate")
	f.StringVar(&o.Cert, "tlscert", "", "`FILE` with the certificate of this client for the NATS server")
	f.StringVar(&o.Key, "tlskey", "", "`FILE` with the key of --tlscert")
	f.StringVar(&o.Root, "root", messages.DefaultRoot, "first `TOKEN` of the installation's subjects")
}

// addressFile is where a node with an embedded server writes its URL.
func addressFile(data string) string { return filepath.Join(data, "address") }

// client connects to the node that the flags choose, for as long as --timeout
// says. The caller calls done.
func (a *app) client(ctx context.Context) (c *client.Client, within context.Context, done func(), err error) {
	c, within, left, err := a.connected(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	within, end := a.limited(within)
	return c, within, func() { end(); left() }, nil
}

// connected connects to the node that the flags choose. within ends when the server
// is gone; the caller calls done.
func (a *app) connected(ctx context.Context) (c *client.Client, within context.Context, done func(), err error) {
	o, file, err := a.server()
	if err != nil {
		return nil, nil, nil, err
	}
	within, lost := context.WithCancelCause(ctx)
	o.Lost = func() { a.gone.Store(true); lost(client.ErrLost) }
	limited, end := a.limited(within)
	defer end()
	if c, err = client.Connect(limited, o); err != nil {
		lost(nil)
		return nil, nil, nil, a.unreachable(err, file)
	}
	return c, within, func() { c.Close(); lost(nil) }, nil
}

// named is the server that flags or NATS_URL name, and reports whether they do. local leaves
// NATS_URL out.
func (a *app) named(local bool) (o client.Options, is bool) {
	o = a.remote.options
	if o.URL == "" && o.Context == "" && !local {
		o.URL = os.Getenv("NATS_URL")
	}
	return o, o.URL != "" || o.Context != ""
}

// server finds the server that the flags choose; file is where its address was
// read, if it was.
func (a *app) server() (o client.Options, file string, err error) {
	o, named := a.named(a.remote.chosen)
	if o.Person == "" {
		o.Person = machineUser()
	}
	if !named {
		o.URL, file, err = a.localAddress()
	}
	return o, file, err
}

// dial connects to a store for what no node does; file is where its address was read, if it
// was. The caller closes the connection.
func (a *app) dial(o client.Options, file string) (store backup.Config, err error) {
	store = backup.Config{Root: o.Root, Version: versionText()}
	server, options, err := o.Resolve()
	if err != nil {
		return store, err
	}
	store.Conn, err = natslog.Connect(server, options...)
	if err != nil && client.Advice(err) == "" {
		err = messages.Refuse(messages.Unavailable, "%v", err)
	}
	if err != nil {
		return store, a.unreachable(err, file)
	}
	return store, nil
}

// folderServer runs the server of a folder for this process alone. stop ends it.
func (a *app) folderServer(dir, root string, sync embedded.Sync) (store backup.Config, stop func() error, err error) {
	store = backup.Config{Root: root, Version: versionText()}
	srv, err := embedded.Start(embedded.Config{Dir: dir, DontListen: true, Sync: sync, Subjects: messages.Subjects{Root: root}, Logger: a.logger(slog.LevelError)})
	if err != nil {
		return store, nil, err
	}
	if store.Conn, err = srv.Connect(); err != nil {
		return store, nil, errors.Join(err, srv.Shutdown())
	}
	return store, func() error { store.Conn.Close(); return srv.Shutdown() }, nil
}

// machineUser is the name of the user who runs the program; empty if the system has none.
func machineUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// localAddress is the URL that a local node wrote under its data folder, with the login
// beside it.
func (a *app) localAddress() (address, file string, err error) {
	file = addressFile(a.remote.data)
	b, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", fail("start one with `"+a.started+" dev`, or name a server with --nats, --context or NATS_URL (or a node's folder with --data)",
			"no node is known: there is no %s", file)
	case err != nil:
		return "", "", fail("name a server with --nats", "the address of the local node cannot be read: %v", err)
	}
	address = strings.TrimSpace(string(b))
	if u, err := url.Parse(address); err != nil || u.Host == "" {
		return "", "", fail("restart the node, which writes it again, or name a server with --nats", "%s does not hold the address of a node", file)
	}
	address, err = localLogin(a.remote.data, address)
	switch {
	case errors.Is(err, errUnused):
		return "", "", fail("start it again, with `"+a.started+" serve` or `"+a.started+" dev`, or name another server with --nats", "no node runs on %s: %v", a.remote.data, err)
	case err != nil:
		return "", "", fail("name a server with --nats", "the login of the local node cannot be read: %v", err)
	}
	return address, file, nil
}

// unreachable explains why a connection failed; file is where the address came from.
func (a *app) unreachable(err error, file string) error {
	if advice := client.Advice(err); advice != "" {
		return fail(advice, "%v", err)
	}
	if file != "" && embedded.Used(a.remote.data) {
		return fail("see the log of the node, or raise --timeout",
			"%v; the address is from %s, and a process that uses the folder runs, but does not answer there", err, file)
	}
	if file != "" {
		return fail("start it again, with `"+a.started+" serve` or `"+a.started+" dev`, or name another server with --nats",
			"%v; the address is from %s, and the node that wrote it is gone", err, file)
	}
	var refused *messages.Error
	if errors.As(err, &refused) {
		return fail("check that the server runs and that --nats, --context or NATS_URL name it", "%v", err)
	}
	return err
}

// address reads an agent's address from the command line.
func address(arg string) (string, error) {
	id, err := messages.ParseAgentID(arg)
	if err != nil {
		return "", usage("%v", err)
	}
	return id.String(), nil
}

// view passes each line of what a node answers to each.
type view func(each func(json.RawMessage) error) error

// ofAgent is a view of an agent.
func (a *app) ofAgent(ctx context.Context, agent string, q messages.Query) view {
	return func(each func(json.RawMessage) error) error {
		agent, err := address(agent)
		if err != nil {
			return err
		}
		return a.read(ctx, q.Follow, each, func(ctx context.Context, c *client.Client) iter.Seq2[json.RawMessage, error] {
			return c.Query(ctx, agent, q)
		})
	}
}

// ofTenant is a view of a tenant.
func (a *app) ofTenant(ctx context.Context, tenant string, q messages.Query) view {
	return func(each func(json.RawMessage) error) error {
		if err := messages.ValidateToken("tenant", tenant); err != nil {
			return usage("%v", err)
		}
		var of coverage
		err := a.read(ctx, false, each, func(ctx context.Context, c *client.Client) iter.Seq2[json.RawMessage, error] {
			return c.QueryTenant(ctx, tenant, q, a.lacks, of.take)
		})
		return a.covered(of, err)
	}
}

// ofAgentOrTenant is a view of the agent that args name, or of the tenant if they name none.
func (a *app) ofAgentOrTenant(ctx context.Context, tenant string, args []string, q messages.Query) view {
	if len(args) == 0 {
		return a.ofTenant(ctx, tenant, q)
	}
	return a.ofAgent(ctx, args[0], q)
}

// ofStore is a view of the whole store.
func (a *app) ofStore(ctx context.Context, name string) view {
	return func(each func(json.RawMessage) error) error {
		var of coverage
		err := a.read(ctx, false, each, func(ctx context.Context, c *client.Client) iter.Seq2[json.RawMessage, error] {
			return c.QueryStore(ctx, messages.Query{View: name}, of.take)
		})
		return a.covered(of, err)
	}
}

// read passes each line of an answer to each.
func (a *app) read(ctx context.Context, follow bool, each func(json.RawMessage) error, ask func(context.Context, *client.Client) iter.Seq2[json.RawMessage, error]) error {
	c, p, done, err := a.reader(ctx, follow)
	if err != nil {
		return err
	}
	defer done()
	for line, err := range ask(p, c) {
		if err != nil {
			return err
		}
		p.hold()
		if err := each(line); err != nil {
			return err
		}
		p.wait()
	}
	return nil
}

// lacks notes that a view does not have all that the log holds.
func (a *app) lacks(l client.Lacks) {
	if l.Unreadable > 0 {
		a.note("%d frames of this tenant's agents could not be read, and what they hold is left out: `%s doctor` lists the agents and the reasons", l.Unreadable, a.started)
	}
	if l.Encrypted > 0 {
		a.note("%d encrypted agents were not searched for words, only for ids and keys", l.Encrypted)
	}
}
