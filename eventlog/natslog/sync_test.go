package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
)

const accounts = `
accounts: {
  SYS: { users: [{user: sys, password: s}] }
  A: { jetstream: enabled, users: [{user: a, password: a}] }
}
system_account: SYS
`

// A server's setting is reported as it is, and as unknown to a user who cannot see it.
func TestAskSync(t *testing.T) {
	for jetstream, want := range map[string]string{
		"jetstream: { sync_interval: always }": "always",
		"jetstream: { sync_interval: 5s }":     "every 5s",
		"jetstream: enabled":                   "every 2m0s",
		"":                                     natslog.SyncUnknown,
	} {
		conf := accounts + jetstream
		if jetstream == "" {
			conf = strings.ReplaceAll(conf, "jetstream: enabled,", "")
		}
		url := configured(t, conf)
		for user, want := range map[string]string{"sys": want, "a": natslog.SyncUnknown} {
			nc, err := natslog.Connect(url, nats.UserInfo(user, user[:1]), nats.Timeout(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			got, err := natslog.AskSync(t.Context(), nc)
			for end := time.Now().Add(3 * time.Minute); want != natslog.SyncUnknown && errors.Is(err, context.DeadlineExceeded) && time.Now().Before(end); { // it was slow
				got, err = natslog.AskSync(t.Context(), nc)
			}
			if got != want || (err == nil) != (want != natslog.SyncUnknown) {
				t.Errorf("%q as %s: %s, %v; want %s", jetstream, user, got, err, want)
			}
		}
	}
}

// Of a cluster the weakest server counts, and one that does not answer makes it unknown.
func TestAskSyncOfACluster(t *testing.T) {
	embeddedtest.Long(t, "several servers")
	routes, held := ports(t, 3)
	var urls []string
	for i, at := range routes {
		_ = held[i].Close()
		urls = append(urls, configured(t, fmt.Sprintf("server_name: s%d\n%sjetstream: { sync_interval: %s }\ncluster: { name: c, listen: %q, routes: [%q, %q, %q] }",
			i, accounts, []string{"always", "always", "7s"}[i], at, "nats://"+routes[0], "nats://"+routes[1], "nats://"+routes[2])))
	}
	nc, err := natslog.Connect(strings.Join(urls, ","), nats.UserInfo("sys", "s"), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	got := ""
	for got != "every 7s" && t.Context().Err() == nil { // until they have found each other
		if got, err = natslog.AskSync(t.Context(), nc); got == "always" {
			t.Fatalf("%s, %v: one of three is not", got, err)
		}
	}
}
