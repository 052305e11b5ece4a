package cli_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestAuth holds that a node with a login lets in the commands of its user, and no client
// that does not have it.
func TestAuth(t *testing.T) {
	for name, c := range map[string]struct {
		login string
		args  []string
		env   string
	}{
		"file":     {"ops:hush/@,%hush", []string{"serve", "--auth", "login.txt"}, ""},
		"variable": {"hush", []string{"dev"}, "REPRISE_AUTH=hush"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.file("reprise.yaml", small)
			w.file("login.txt", c.login+"\n")
			w.file(".reprise/login.new", "not ours")
			if err := os.Chmod(filepath.Join(w.dir, ".reprise", "login.new"), 0o666); err != nil {
				t.Fatal(err)
			}
			if c.env != "" {
				w.env = append(w.env, c.env)
			}
			node := w.node(append(c.args, "--listen", "127.0.0.1:0", "--sync", "relaxed", "--http", "off")...)
			w.run("ls").exits(0)
			w.run("doctor", "--quick").exits(0)
			address := read(t, w, "address")
			if _, err := nats.Connect(address); err == nil {
				t.Errorf("a client without the login is let in")
			}
			w.run("ls", "--nats", address).exits(1, "user:password@")
			info, err := os.Stat(filepath.Join(w.dir, ".reprise", "login"))
			if err != nil || info.Mode() != 0o600 || read(t, w, "login") != c.login {
				t.Errorf("the login is left as %v, %v", info, err)
			}
			if code := node.end(syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if said := node.ready + node.rest.String() + node.errs.String(); strings.Contains(said, "hush") || !strings.Contains(said, "with a login") {
				t.Errorf("it says %s", said)
			}
			if _, err := os.Stat(filepath.Join(w.dir, ".reprise", "login")); err == nil {
				t.Error("the login is still there after a clean exit")
			}
		})
	}
}

func read(t *testing.T, w *world, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, ".reprise", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// TestStaleLogin holds that the login of a node that was killed is not shown to one that
// wants none.
func TestStaleLogin(t *testing.T) {
	w := newWorld(t)
	w.file(".reprise/login", "ops:hush\n")
	w.dev()
	w.run("ls").exits(0)
	if _, err := os.Stat(filepath.Join(w.dir, ".reprise", "login")); err == nil {
		t.Error("the login is still there")
	}
}

// TestLoginOfKilled holds that commands do not give the login of a node that was killed to
// what listens on its address now.
func TestLoginOfKilled(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "REPRISE_AUTH=hush")
	w.dev().kill()
	thief, err := net.Listen("tcp", strings.TrimPrefix(read(t, w, "address"), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	met := make(chan struct{})
	go func() {
		defer close(met)
		if conn, err := thief.Accept(); err == nil {
			t.Error("a command connects to it")
			_ = conn.Close()
		}
	}()
	w.run("ls").exits(1, "no node runs on", "start it again, with `", " serve` or")
	_ = thief.Close()
	<-met
}

func TestExposedListen(t *testing.T) {
	w := newWorld(t)
	w.file("reprise.yaml", small)
	for _, verb := range []string{"serve", "dev"} {
		w.run(verb, "--listen", "0.0.0.0:0", "--http", "off").exits(1, "0.0.0.0", "--auth", "REPRISE_AUTH", "--insecure")
	}
	open := w.node("serve", "--listen", "0.0.0.0:0", "--insecure", "--http", "off")
	if code := open.end(syscall.SIGTERM); code != 0 || !strings.Contains(open.ready, "without a login, open to all who reach this address") || !strings.Contains(open.errs.String(), "requires no login") {
		t.Errorf("exit code %d; it says %s%s", code, open.ready, open.errs)
	}
	w.run("serve", "--auth", "", "--http", "off").exits(2, "--auth is empty")
	w.run("serve", "--auth", "none.txt", "--http", "off").exits(1, "none.txt")
	w.run("dev", "--http-host", "http://node.example").exits(2, "--http-host")
	w.run("serve", "--http", "0.0.0.0:0", "--http-host", "").exits(2, "--http-host is empty")
	w.env = append(w.env, "REPRISE_AUTH=")
	w.run("serve", "--http", "off").exits(1, "REPRISE_AUTH", "one line")
	w.env = append(w.env, "REPRISE_AUTH=hush hush")
	if r := w.run("serve", "--http", "off").exits(1, "REPRISE_AUTH", "one line"); strings.Contains(r.err, "hush") {
		t.Errorf("it says %s", r.err)
	}
	w.run("serve", "--nats", "nats://127.0.0.1:1", "--auth", "login.txt").exits(2, "--auth")
	for _, verb := range []string{"serve", "ls"} {
		if r := w.run(verb, "--nats", "nats://u:12/hush@127.0.0.1:1").exits(1, "cannot be read", "%XX"); strings.Contains(r.err, "hush") {
			t.Errorf("%s says %s", verb, r.err)
		}
	}
}
