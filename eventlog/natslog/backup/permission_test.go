package backup_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/backup"
)

// A user who may do everything but what a backup needs is told what that is, at
// once.
func TestPermissions(t *testing.T) {
	t.Parallel()
	may := &server.SubjectPermission{Allow: []string{">"}, Deny: []string{"$JS.API.STREAM.SNAPSHOT.REPRISE_DEF"}}
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, AuthTimeout: 60,
		Users: []*server.User{
			{Username: "admin", Password: "admin"},
			{Username: "some", Password: "some", Permissions: &server.Permissions{Publish: may}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer func() { srv.Shutdown(); srv.WaitForShutdown() }()
	if !srv.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	as := func(user string) *nats.Conn {
		t.Helper()
		nc, err := natslog.Connect(srv.ClientURL(), nats.UserInfo(user, user), nats.Timeout(time.Minute), nats.ErrorHandler(nil))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	admin := as("admin")
	if _, err := natslog.Open(within(t), natslog.Config{Conns: []*nats.Conn{admin}, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Write(within(t), io.Discard, backup.Config{Conn: admin}); err != nil {
		t.Error(err)
	}
	_, err = backup.Write(within(t), io.Discard, backup.Config{Conn: as("some")})
	if err == nil || !strings.Contains(err.Error(), "$JS.API.STREAM.SNAPSHOT.REPRISE_DEF") || !strings.Contains(err.Error(), "grant") {
		t.Errorf("without permission: %v", err)
	}
}
