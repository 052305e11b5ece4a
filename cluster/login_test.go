package cluster_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// configured runs a server as its administrator has set it up, and returns its address without a
// scheme.
func configured(t *testing.T, conf string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nats.conf")
	must(t, os.WriteFile(path, []byte(fmt.Sprintf("listen: 127.0.0.1:-1\njetstream: { store_dir: %q }\n%s", t.TempDir(), conf)), 0o600))
	opts, err := server.ProcessConfigFile(path)
	must(t, err)
	opts.NoSigs, opts.NoLog, opts.AuthTimeout, opts.TLSTimeout = true, true, 60, 60
	s, err := server.NewServer(opts)
	must(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not listen")
	}
	return s.Addr().String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nkey makes a key of NATS, with its seed in a file.
func nkey(t *testing.T, dir, name string, prefix nkeys.PrefixByte) (k nkeys.KeyPair, public, file string) {
	t.Helper()
	k, err := nkeys.CreatePair(prefix)
	must(t, err)
	public, err = k.PublicKey()
	must(t, err)
	seed, err := k.Seed()
	must(t, err)
	file = filepath.Join(dir, name+".nk")
	must(t, os.WriteFile(file, seed, 0o600))
	return k, public, file
}

// credentials lays out a server that trusts an operator, and a user's credentials.
func credentials(t *testing.T, dir string) (conf, creds string) {
	t.Helper()
	operator, _, _ := nkey(t, dir, "operator", nkeys.PrefixByteOperator)
	account, accountID, _ := nkey(t, dir, "account", nkeys.PrefixByteAccount)
	system, systemID, _ := nkey(t, dir, "system", nkeys.PrefixByteAccount)
	user, userID, _ := nkey(t, dir, "creds", nkeys.PrefixByteUser)
	_ = system
	operatorID, err := operator.PublicKey()
	must(t, err)
	o := jwt.NewOperatorClaims(operatorID)
	o.SystemAccount = systemID
	oj, err := o.Encode(operator)
	must(t, err)
	a := jwt.NewAccountClaims(accountID)
	a.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	aj, err := a.Encode(operator)
	must(t, err)
	sj, err := jwt.NewAccountClaims(systemID).Encode(operator)
	must(t, err)
	uj, err := jwt.NewUserClaims(userID).Encode(account)
	must(t, err)
	seed, err := user.Seed()
	must(t, err)
	text, err := jwt.FormatUserConfig(uj, seed)
	must(t, err)
	creds = filepath.Join(dir, "user.creds")
	must(t, os.WriteFile(creds, text, 0o600))
	return fmt.Sprintf("operator: %s\nresolver: MEMORY\nresolver_preload: { %s: %s, %s: %s }", oj, accountID, aj, systemID, sj), creds
}

// certificates makes a CA of its own, with a certificate for the loopback and one for
// a client.
func certificates(t *testing.T, dir string) {
	t.Helper()
	ca, caKey := certificate(t, dir, "ca", nil, nil)
	certificate(t, dir, "server", ca, caKey)
	certificate(t, dir, "client", ca, caKey)
}

func certificate(t *testing.T, dir, name string, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}
	if ca == nil {
		ca, caKey, c.IsCA, c.KeyUsage = c, own, true, x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca, &own.PublicKey, caKey)
	must(t, err)
	private, err := x509.MarshalECPrivateKey(own)
	must(t, err)
	write := func(file, kind string, b []byte) {
		must(t, os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600))
	}
	write(name+".pem", "CERTIFICATE", der)
	write(name+".key", "EC PRIVATE KEY", private)
	c, err = x509.ParseCertificate(der)
	must(t, err)
	return c, own
}

// Each way to log in serves nodes and those who read, as an option and in a context of
// the nats tool; without it, or with a wrong one, both say what to do.
func TestLogins(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	in := func(name string) string { return filepath.Join(home, name) }
	_, public, seed := nkey(t, home, "user", nkeys.PrefixByteUser)
	_, _, stranger := nkey(t, home, "stranger", nkeys.PrefixByteUser)
	trusted, creds := credentials(t, home)
	_, others := credentials(t, t.TempDir())
	certificates(t, home)
	certificate(t, home, "other", nil, nil)
	tls := fmt.Sprintf("tls: { cert_file: %q, key_file: %q, ca_file: %q", in("server.pem"), in("server.key"), in("ca.pem"))
	type context map[string]string
	for name, test := range map[string]struct {
		conf    string
		good    []client.Options
		context context                   // works, too
		bad     map[string]client.Options // by what their errors say
	}{
		"password": {
			conf: "authorization: { user: u, password: secret }", good: []client.Options{{URL: "u:secret@"}}, context: context{"user": "u", "password": "secret"},
			bad: map[string]client.Options{"--creds": {}, "user:password@": {URL: "u:wrong@"}},
		},
		"token": {
			conf: "authorization: { token: secret }", good: []client.Options{{URL: "secret@"}}, context: context{"token": "secret"},
			bad: map[string]client.Options{"--creds": {}, "user:password@": {URL: "wrong@"}},
		},
		"nkey": {
			conf: "authorization: { users: [{ nkey: " + public + " }] }", good: []client.Options{{NKey: seed}}, context: context{"nkey": seed},
			bad: map[string]client.Options{"--nkey": {}, "--creds": {NKey: stranger}},
		},
		"creds": {
			conf: trusted, good: []client.Options{{Creds: creds}}, context: context{"creds": creds},
			bad: map[string]client.Options{"--creds": {}, "--nkey": {Creds: others}, "exist, can be read": {Creds: in("none.creds")}},
		},
		"tls": {
			conf: tls + " }", good: []client.Options{{CA: in("ca.pem")}}, context: context{"ca": in("ca.pem")},
			bad: map[string]client.Options{"--tlsca": {}, "name the CA": {CA: in("other.pem")}},
		},
		"client certificate": {
			conf: tls + ", verify: true }", good: []client.Options{{CA: in("ca.pem"), Cert: in("client.pem"), Key: in("client.key")}},
			context: context{"ca": in("ca.pem"), "cert": in("client.pem"), "key": in("client.key")},
			bad:     map[string]client.Options{"--tlscert": {CA: in("ca.pem")}, "has signed": {CA: in("ca.pem"), Cert: in("other.pem"), Key: in("other.key")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := configured(t, test.conf)
			test.context["url"] = "nats://" + address
			b, err := json.Marshal(test.context)
			must(t, err)
			must(t, os.MkdirAll(in("nats/context"), 0o700))
			must(t, os.WriteFile(in("nats/context/it.json"), b, 0o600))
			for _, o := range append(test.good, client.Options{Context: "it"}) {
				if o.Context == "" {
					o.URL = "nats://" + o.URL + address
				}
				works(t, o)
			}
			for says, o := range test.bad {
				o.URL = "nats://" + o.URL + address
				refused(t, o, says)
			}
		})
	}
}

// dial connects a client, which gives a server five seconds to greet it: it is tried again
// for as long as unhurried gives a node.
func dial(ctx context.Context, o client.Options) (c *client.Client, err error) {
	for range 12 {
		if c, err = client.Connect(ctx, o); err == nil || !strings.Contains(err.Error(), "no NATS server answers") {
			break
		}
	}
	return c, err
}

// works has a node and a reader log in.
func works(t *testing.T, o client.Options) {
	t.Helper()
	url, options, err := o.Resolve()
	must(t, err)
	cfg := cluster.Config{NATS: url, NATSOptions: append(options, unhurried), Logger: slog.New(slog.DiscardHandler)}
	agents(echo(), nil)(&cfg)
	n, err := cluster.Start(t.Context(), cfg)
	must(t, err)
	defer func() { _ = n.Close() }()
	c, err := dial(t.Context(), o)
	must(t, err)
	defer c.Close()
	if said := c.Server() + n.URL(); strings.Contains(said, "secret") {
		t.Errorf("a secret is told: %s", said)
	}
	for _, err := range c.QueryTenant(t.Context(), messages.DefaultTenant, messages.Query{View: "agents"}) {
		must(t, err)
	}
}

// refused has both try, in vain.
func refused(t *testing.T, o client.Options, says string) {
	t.Helper()
	url, options, err := o.Resolve()
	must(t, err)
	_, asNode := cluster.Start(t.Context(), cluster.Config{NATS: url, NATSOptions: append(options, unhurried), Logger: slog.New(slog.DiscardHandler)})
	_, asReader := dial(t.Context(), o)
	for _, err := range []error{asNode, asReader} {
		if err == nil || !strings.Contains(client.Advice(err), says) || strings.Contains(err.Error(), "wrong") {
			t.Errorf("%v, with the advice %q; want one that says %q", err, client.Advice(err), says)
		}
	}
}

// A server that takes a node's login no more, and then again: log and readiness say
// why the node is away, the log once.
func TestLoginRefusedWhileRunning(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	serves := func(password string) *server.Options {
		return &server.Options{
			Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
			Username: "node", Password: password, AuthTimeout: 60,
		}
	}
	s, err := server.NewServer(serves("good"))
	w.ok(err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not listen")
	}
	takes := func(password string) {
		o := serves(password)
		o.Port = s.Addr().(*net.TCPAddr).Port
		w.ok(s.ReloadOptions(o))
	}
	n := w.node(served, func(c *cluster.Config) { c.NATS = "nats://node:good@" + s.Addr().String() })
	takes("better")
	w.eventually("it says why it is not ready", func() bool {
		_, body := w.fetch("GET", n, "/readyz")
		return strings.Contains(string(body), "the login is refused: nats: Authorization Violation; log in with --creds")
	})
	const said = `msg="the NATS server refuses this node's login`
	w.eventually("it says why", func() bool { return strings.Contains(w.log.String(), said) })
	takes("good")
	w.eventually("it is ready again", func() bool { status, _ := w.readiness(n); return status == http.StatusOK })
	if log := w.log.String(); strings.Count(log, said) != 1 || strings.Contains(log, "good@") {
		t.Errorf("it says\n%s", log)
	}
}

// leastPublish and leastSubscribe are the permissions that a node needs, of one
// installation with the usual root.
var (
	leastPublish = []string{
		"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.CREATE.*", "$JS.API.STREAM.UPDATE.REPRISE_DEF",
		"$JS.API.STREAM.MSG.GET.*", "$JS.API.STREAM.MSG.DELETE.KV_reprise_keys", "$JS.API.STREAM.PURGE.*", "$JS.API.CONSUMER.>", "$JS.API.DIRECT.GET.>",
		"$JS.ACK.REPRISE_IN.>", "$JS.FC.>", "$KV.reprise_leases.>", "$KV.reprise_members.>", "$KV.reprise_keys.>", "$KV.reprise_marks.>",
		"reprise.>", "_actor.reprise.>", "agents.>", "_INBOX.>",
	}
	leastSubscribe = []string{"_INBOX.>", "reprise.>", "_actor.reprise.>", "agents.>", "$SRV.>"}
)

// Two nodes with these permissions and no more serve, encrypt, examine and delete.
func TestLeastPermissions(t *testing.T) { // A103
	embeddedtest.Long(t, "several nodes")
	list := func(s []string) string { return `["` + strings.Join(s, `","`) + `"]` }
	address := configured(t, fmt.Sprintf("authorization: { users: [{user: node, password: n, permissions: {publish: %s, subscribe: %s}}, {user: user, password: u}] }",
		list(leastPublish), list(leastSubscribe)))
	cfg := cluster.Config{
		NATS: "nats://node:n@" + address, Logger: slog.New(slog.DiscardHandler), WrappingKeys: []encrypted.Key{key(1)},
		NATSOptions: []nats.Option{unhurried, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				t.Error(err)
			}
		})},
	}
	agents(echo(), nil)(&cfg)
	for range 2 {
		n, err := cluster.Start(t.Context(), cfg)
		must(t, err)
		defer func() { _ = n.Close() }()
	}
	c, err := dial(t.Context(), client.Options{URL: "nats://user:u@" + address})
	must(t, err)
	defer c.Close()
	for _, err := range c.Ask(t.Context(), "assistant/a", "hi") {
		must(t, err)
	}
	for _, err := range c.QueryStore(t.Context(), messages.Query{View: "doctor", Deep: true}) {
		must(t, err)
	}
	_, err = c.Do(t.Context(), "assistant/a", messages.Delete{ID: "x"})
	must(t, err)
}
