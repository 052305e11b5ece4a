package embedded_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
)

// A cluster that has started makes a stream with as many replicas at once, and
// takes messages when one of its servers is down; that one comes back.
func TestACluster(t *testing.T) {
	embeddedtest.Long(t, "several servers")
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	all, err := embedded.StartCluster(ctx, 3, embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range all {
			_ = s.Shutdown()
		}
	})
	nc, err := natslog.Connect(embedded.ClientURLs(all), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	var s jetstream.Stream
	err = natslog.Await(ctx, nc, quiet, func(ctx context.Context) (err error) {
		s, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: 3})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.CachedInfo().Cluster.Replicas) != 2 {
		t.Errorf("%+v; want a leader and two more", s.CachedInfo().Cluster)
	}
	where := all[1].ClientURL()
	if err := all[1].Shutdown(); err != nil {
		t.Fatal(err)
	}
	for err = errors.New("not tried"); err != nil && ctx.Err() == nil; { // its stream may be without a leader for a moment
		once, end := context.WithTimeout(ctx, time.Second)
		_, err = js.Publish(once, "s", nil)
		end()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := all[1].Restart(); err != nil || all[1].ClientURL() != where {
		t.Errorf("%v; at %s, want %s", err, all[1].ClientURL(), where)
	}
}
