package cli_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
)

// TestSecretsAreNowhere holds that keys of model servers, what tools get in their
// environment and the login of NATS are in nothing that a node stores, prints or exports,
// whether they were accepted or refused.
func TestSecretsAreNowhere(t *testing.T) { // A56
	w := newWorld(t)
	secrets := map[string]string{"SOME_KEY": key, "REFUSED_KEY": "sk-refusedrefusedrefused", "TOOL_TOKEN": "tok-4f9a77c1be", "password": "hush-6b1d90"}
	good, asked := modelServer(t)
	refusing := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(rw, `{"error":{"message":"Incorrect API key provided: %s"}}`, r.Header.Get("Authorization"))
	}))
	t.Cleanup(refusing.Close)
	store := t.TempDir()
	address := serveWithLogin(t, store, "node", secrets["password"])
	for name, secret := range secrets {
		if name != "password" {
			w.env = append(w.env, name+"="+secret)
		}
	}
	w.env = append(w.env, "NATS_URL="+address)
	w.file("reprise.yaml", `
retain_to: archive
agents:
  assistant: {model: mine/small, tools: [lookup]}
  refused: {model: other/small, tools: [lookup]}
  clerk: {model: demo/demo, tools: [lookup]}
  looker: {model: demo/demo, tools: [surroundings]}
  breaker: {model: demo/demo, tools: [broken]}
  brief: {model: demo/demo, tools: [lookup], retain: 1ms}
tools:
  lookup:
    command: [/bin/sh, -c, 'printf "%s" "$TOKEN" | wc -c']
    description: Look the word up
    read_only: true
    env: {TOKEN: "${TOOL_TOKEN}"}
  surroundings: {command: [/usr/bin/env], description: What is around, read_only: true}
  broken: {command: [/bin/sh, -c, 'echo it broke >&2; exit 3'], description: Break, read_only: true, env: {TOKEN: "${TOOL_TOKEN}"}}
providers:
  mine: {api_key: "${SOME_KEY}", base_url: "`+good+`"}
  other: {api_key: "${REFUSED_KEY}", base_url: "`+refusing.URL+`/v1"}
`)
	said := new(strings.Builder)
	run := func(code int, parts []string, args ...string) result {
		t.Helper()
		r := w.run(args...).exits(code, parts...)
		said.WriteString(r.out + r.err)
		return r
	}
	run(0, nil, "check")
	node := w.node("serve", "--http", "127.0.0.1:0", "-o", "json")
	run(0, []string{"Grüezi"}, "ask", "assistant/main", "hello")
	if got := <-asked; got != "small Bearer "+key {
		t.Errorf("the model was asked as %q", got)
	}
	run(1, []string{"Incorrect API key"}, "ask", "refused/main", "hello")
	run(0, []string{fmt.Sprint(len(secrets["TOOL_TOKEN"]))}, "ask", "clerk/main", "use lookup")
	run(0, []string{"PATH="}, "ask", "looker/main", "use surroundings")
	run(0, []string{"it broke"}, "ask", "breaker/main", "use broken")
	run(0, nil, "ask", "brief/main", "use lookup")
	w.await("brief/main", "agent.deleted")
	run(0, nil, "set-state", "clerk/main", `{"plan":"free"}`)

	nc, err := nats.Connect(address, nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.Publish("reprise.in.default.nobody.main", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(run(0, nil, "dlq", "ls").out, "nobody") { // each asks the server
	}
	for _, agent := range []string{"assistant/main", "refused/main", "clerk/main", "looker/main", "breaker/main"} {
		for _, view := range []string{"events", "history", "state", "show", "turns", "effects", "usage", "replay", "timers", "tree"} {
			run(0, nil, view, agent)
			run(0, nil, view, agent, "-o", "json")
		}
	}
	for _, view := range []string{"ls", "effects", "usage", "approvals", "nodes", "partitions", "doctor"} {
		run(0, nil, view, "-o", "json")
	}
	run(0, nil, "backup", "store.tar")
	_, metrics := get(t, object(t, node.ready)["http"].(string), "/metrics")
	stored := rawMessages(t, nc)
	if code := node.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}

	places := map[string]string{
		"commands": said.String(), "the node's output": node.ready + node.rest.String() + node.errs.String(), "metrics": metrics,
	}
	for name, raw := range stored {
		places[name] = raw
	}
	for _, dir := range []string{store, w.dir} {
		files(t, dir, places)
	}
	for _, stands := range []struct{ in, what string }{ // it would be found
		{"REPRISE_DEF", "Look the word up"}, {"REPRISE_DLQ", "nobody"}, {"KV_reprise_members", "looker"}, {"REPRISE_LOG", "Grüezi"}, {"REPRISE_LOG", "Incorrect API key"},
		{"store.tar", "Grüezi"}, {"archive/default/brief", "use lookup"}, {".blk", "Grüezi"}, {"the node's output", "ready"}, {"commands", "Incorrect API key"},
	} {
		found := false
		for name, text := range places {
			found = found || strings.Contains(name, stands.in) && strings.Contains(text, stands.what)
		}
		if !found {
			t.Errorf("%q is not in %s: nothing is shown by what is missing there", stands.what, stands.in)
		}
	}
	for name, secret := range secrets {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), url.QueryEscape("node:" + secret)} {
			for place, text := range places {
				if strings.Contains(text, form) {
					t.Errorf("%s is in %s", name, place)
				}
			}
		}
	}
}

// serveWithLogin starts a server that lets one user in, and returns its address with the login in
// it.
func serveWithLogin(t *testing.T, dir, user, password string) string {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{
		Dir: dir, Sync: embedded.SyncRelaxed, Logger: slog.New(slog.DiscardHandler), Login: embedded.Login{User: user, Password: password},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	return strings.Replace(srv.ClientURL(), "nats://", fmt.Sprintf("nats://%s:%s@", user, password), 1)
}

// rawMessages are all messages of all streams, those of KV buckets among them, with their
// subjects and headers, by stream.
func rawMessages(t *testing.T, nc *nats.Conn) map[string]string {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	names := js.StreamNames(t.Context())
	for name := range names.Name() {
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		info, err := stream.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all[name] = fmt.Sprintf("%+v", info)
		for seq := max(info.State.FirstSeq, 1); seq <= info.State.LastSeq; seq++ {
			raw, err := stream.GetMsg(t.Context(), seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			all[name] += fmt.Sprintf("\n%s %v %s", raw.Subject, raw.Header, raw.Data)
		}
	}
	if err := names.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// files adds what is in the files of a folder.
func files(t *testing.T, dir string, to map[string]string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		b, err := io.ReadAll(f)
		to[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
