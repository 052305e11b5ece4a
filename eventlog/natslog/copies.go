package natslog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// Copies says on how many servers a stream is kept, and how they stand.
type Copies struct {
	// Stream is its name; buckets are streams whose names begin with KV_.
	Stream string
	// Replicas is how many copies its settings ask for.
	Replicas int
	// Leader is the server that orders it; empty: it has none now and takes nothing.
	Leader string
	// Behind are the other servers whose copy is not the newest, each with why.
	Behind []string
	// Clustered says that its server is one of a cluster.
	Clustered bool
	Bytes     uint64
	// Consumers are those that have as many copies as the stream.
	Consumers int
	// Err is why nothing is known of the stream but its name; nil: all is.
	Err error
}

// Whole reports whether the stream has a leader and so many copies, all of them current.
func (c Copies) Whole(replicas int) bool {
	return c.Err == nil && c.Replicas == replicas && c.Leader != "" && len(c.Behind) == 0
}

// Copies says how the streams and buckets of the installation are kept, sorted by
// name. One that does not answer has its Err set.
func (l *Log) Copies(ctx context.Context) ([]Copies, error) {
	return copiesOf(ctx, l.conns[0].js, l.subjects)
}

func copiesOf(ctx context.Context, js jetstream.JetStream, s messages.Subjects) ([]Copies, error) {
	names, err := kept(ctx, js, s)
	if err != nil {
		return nil, err
	}
	all := make([]Copies, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { all[i] = copiesOfOne(ctx, js, name) })
	}
	wg.Wait()
	return all, nil
}

// kept are the streams and buckets that there are of an installation.
func kept(ctx context.Context, js jetstream.JetStream, s messages.Subjects) (names []string, err error) {
	ours, buckets := StreamNames(s), "KV_"+root(s)+"_"
	list := js.StreamNames(ctx)
	for name := range list.Name() {
		bucket, ok := strings.CutPrefix(name, buckets)
		if ok && !strings.Contains(bucket, "_") || slices.Contains(ours, name) {
			names = append(names, name)
		}
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("list the streams: %w", err)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func copiesOfOne(ctx context.Context, js jetstream.JetStream, name string) Copies {
	c := Copies{Stream: name}
	s, err := js.Stream(ctx, name)
	if err != nil {
		c.Err = fmt.Errorf("stream %s does not answer: %w", name, err)
		return c
	}
	info := s.CachedInfo()
	c.Replicas, c.Bytes = max(1, info.Config.Replicas), info.State.Bytes
	c.stand(info.Cluster, "")
	if info.Config.Retention != jetstream.WorkQueuePolicy {
		return c
	}
	list := s.ListConsumers(ctx)
	for consumer := range list.Info() {
		if consumer.Config.Replicas == 0 || consumer.Config.Replicas == c.Replicas {
			c.Consumers++
			c.stand(consumer.Cluster, "consumer "+consumer.Name+": ")
		}
	}
	if err := list.Err(); err != nil {
		c.Err = fmt.Errorf("consumers of stream %s: %w", name, err)
	}
	return c
}

// stand notes how a group of servers stands: of the stream, or of what.
func (c *Copies) stand(group *jetstream.ClusterInfo, what string) {
	if group == nil { // a server that stands alone
		c.Leader = "the only server"
		return
	}
	c.Clustered = c.Clustered || group.Name != ""
	switch {
	case what == "":
		c.Leader = group.Leader
	case group.Leader == "":
		c.Behind = append(c.Behind, what+"no leader")
	}
	if group.Desired != nil {
		c.Behind = append(c.Behind, what+"its servers are being changed")
	}
	for _, r := range group.Replicas {
		switch {
		case r.Offline:
			c.Behind = append(c.Behind, what+r.Name+" is offline")
		case !r.Current:
			c.Behind = append(c.Behind, fmt.Sprintf("%s%s is %d behind", what, r.Name, r.Lag))
		}
	}
	if missing := c.Replicas - 1 - len(group.Replicas); missing > 0 {
		c.Behind = append(c.Behind, fmt.Sprintf("%s%d copies are not placed yet", what, missing))
	}
}

// Scale says what a store is to be brought to.
type Scale struct {
	Conn     *nats.Conn // made by [Connect]; it is not closed
	Subjects messages.Subjects
	// Replicas is how many copies each stream and bucket shall have.
	Replicas int
	// DryRun changes nothing: Progress is called for each stream as it is.
	DryRun bool
	// Progress is called before a stream is changed, while it is copied, and when
	// it is whole. Nil: not.
	Progress func(c Copies, done bool)
}

// Run brings every stream and bucket to so many copies, one after the other, waits
// until each is whole, and says how they are then. Nodes may run meanwhile, and after an
// error or a crash it may be run again. It refuses, before it changes anything, where
// the servers cannot keep so many copies, or streams have more.
func (u Scale) Run(ctx context.Context) ([]Copies, error) {
	js, err := jetstream.New(u.Conn)
	if err != nil {
		return nil, err
	}
	if u.Progress == nil {
		u.Progress = func(Copies, bool) {}
	}
	before, err := copiesOf(ctx, js, u.Subjects)
	if err != nil {
		return nil, explained(err, u.Conn, u.Replicas)
	}
	if err := u.admit(ctx, js, before); err != nil {
		return before, err
	}
	after := slices.Clone(before)
	for i, c := range before {
		if u.Progress(c, c.Whole(u.Replicas)); u.DryRun || c.Whole(u.Replicas) {
			continue
		}
		if after[i], err = u.raise(ctx, js, c); err != nil {
			return after, fmt.Errorf("bring stream %s to %d copies: %w", c.Stream, u.Replicas, explained(err, u.Conn, u.Replicas))
		}
	}
	return after, nil
}

// admit refuses what cannot be done.
func (u Scale) admit(ctx context.Context, js jetstream.JetStream, have []Copies) error {
	if len(have) == 0 {
		return fmt.Errorf("at %s there is no store with root %s: name the server and the root of one", messages.Redacted(u.Conn.ConnectedUrl()), root(u.Subjects))
	}
	for _, c := range have {
		switch {
		case c.Err != nil:
			return c.Err
		case c.Replicas > u.Replicas:
			return fmt.Errorf("stream %s has %d copies already: ask for as many at least; copies are not taken away", c.Stream, c.Replicas)
		}
	}
	if err := u.probe(ctx, js); err != nil {
		return explained(err, u.Conn, u.Replicas)
	}
	return nil
}

// probe finds out whether the servers can keep so many copies, with a stream that
// holds nothing and goes again.
func (u Scale) probe(ctx context.Context, js jetstream.JetStream) error {
	name := NamesOf(u.Subjects).prefix + "PROBE"
	_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: name, Description: "reprise: looks how many copies can be kept", Subjects: []string{root(u.Subjects) + ".probe"},
		Storage: jetstream.MemoryStorage, Replicas: u.Replicas,
	})
	if gone := js.DeleteStream(ctx, name); gone != nil && !errors.Is(gone, jetstream.ErrStreamNotFound) {
		err = errors.Join(err, gone)
	}
	return err
}

// lookEvery is how often the copies of a stream are looked at while they are made.
const lookEvery = 100 * time.Millisecond

// raise brings one stream to so many copies and waits until it is whole.
func (u Scale) raise(ctx context.Context, js jetstream.JetStream, c Copies) (Copies, error) {
	if c.Replicas != u.Replicas {
		if err := u.update(ctx, js, c.Stream); err != nil {
			return c, err
		}
	}
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		now := copiesOfOne(ctx, js, c.Stream)
		if now.Whole(u.Replicas) {
			u.Progress(now, true)
			return now, nil
		}
		if now.Err == nil {
			u.Progress(now, false)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return now, fmt.Errorf("its copies are not current yet (%s); the cluster continues to make them, run it again to wait for them: %w", strings.Join(now.Behind, ", "), ctx.Err())
		}
	}
}

// update asks for the copies. The server never changes the persist mode of a stream
// and keeps one that is async on one server: it can only be made again, empty. That
// is so of snapshots alone, which are a cache.
func (u Scale) update(ctx context.Context, js jetstream.JetStream, stream string) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	cfg := s.CachedInfo().Config
	cfg.Metadata, cfg.Replicas = ownMetadata(cfg.Metadata), u.Replicas
	if cfg.PersistMode == jetstream.AsyncPersistMode {
		cfg.PersistMode = jetstream.DefaultPersistMode
		return replace(ctx, js, cfg)
	}
	_, err = js.UpdateStream(ctx, cfg)
	return err
}

// replacing is how often a stream is removed again that a node has made meanwhile.
const replacing = 10

// replace makes a cache's stream again, empty. A node that stores something in between
// makes it as it was.
func replace(ctx context.Context, js jetstream.JetStream, cfg jetstream.StreamConfig) (err error) {
	for range replacing {
		if err := js.DeleteStream(ctx, cfg.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
		if _, err = js.CreateStream(ctx, cfg); !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return err
		}
	}
	return err
}
