package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

func jetStream(t testing.TB, c natslog.Config) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(c.Conns[0], jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func streamNames(s messages.Subjects) []string {
	n := natslog.NamesOf(s)
	names := []string{n.Definitions(), n.Inbox(), n.DeadLetters(), n.Snapshots()}
	for p := messages.Partition(0); p < messages.Partitions; p += 16 {
		names = append(names, n.Blobs(p))
	}
	for p := messages.Partition(0); p < messages.Partitions; p += 4 {
		names = append(names, n.Log(p))
	}
	return names
}

func removeStreams(t testing.TB, c natslog.Config) {
	t.Helper()
	js := jetStream(t, c)
	for _, name := range append(streamNames(c.Subjects), natslog.MarksOf(c.Subjects)) {
		if err := js.DeleteStream(context.Background(), name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Errorf("remove %s: %v", name, err)
		}
	}
}

// dangerous says, of each setting, which stream to spoil how, and what the
// refusal must name beside the stream.
var dangerous = map[string]struct {
	stream func(natslog.Names) string
	spoil  func(*jetstream.StreamConfig)
	named  []string // nil: accepted
}{
	"max age on the log":      {log0, func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, []string{"max_age is 1h0m0s", "set it to 0s"}},
	"max messages on the log": {log0, func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 }, []string{"max_msgs is 1000", "set it to -1"}},
	"max bytes on the log":    {log0, func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20; c.Discard = jetstream.DiscardOld }, []string{"max_bytes is 1048576", "DiscardOld"}},
	"one message per agent":   {log0, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }, []string{"max_msgs_per_subject is 1"}},
	"small messages only":     {log0, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 }, []string{"max_msg_size is 1000"}},
	"memory storage":          {log0, func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, []string{"storage is Memory"}},
	"a queue as log":          {log0, func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, []string{"retention is WorkQueue"}},
	"other subjects":          {log0, func(c *jetstream.StreamConfig) { c.Subjects = c.Subjects[:2] }, []string{"subjects is", "set them to"}},
	"no acknowledgements":     {log0, func(c *jetstream.StreamConfig) { c.NoAck = true }, []string{"no_ack is true"}},
	"asynchronous writes":     {log0, func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode }, []string{"persist_mode is async"}},
	"few consumers":           {log0, func(c *jetstream.StreamConfig) { c.MaxConsumers = 10 }, []string{"max_consumers is 10"}},
	"a sealed log":            {log0, func(c *jetstream.StreamConfig) { c.Sealed = true }, []string{"sealed is true"}},
	"a mirror": {log0, func(c *jetstream.StreamConfig) {
		c.Subjects, c.Mirror = nil, &jetstream.StreamSource{Name: "ELSEWHERE"}
	}, []string{"mirror is set"}},
	"definitions that age":         {natslog.Names.Definitions, func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, []string{"max_age is 1h0m0s"}},
	"definitions overwritten":      {natslog.Names.Definitions, func(c *jetstream.StreamConfig) { c.Discard, c.DiscardNewPerSubject = jetstream.DiscardOld, false }, []string{"max_msgs_per_subject is 1 with discard DiscardOld"}},
	"inputs without partition":     {natslog.Names.Inbox, func(c *jetstream.StreamConfig) { c.SubjectTransform = nil }, []string{"subject_transform is none", "partition(64,2,3,4)"}},
	"inputs that are not removed":  {natslog.Names.Inbox, func(c *jetstream.StreamConfig) { c.Retention = jetstream.LimitsPolicy }, []string{"retention is Limits"}},
	"inputs that age":              {natslog.Names.Inbox, func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, []string{"max_age is 1h0m0s"}},
	"inputs pushed out":            {natslog.Names.Inbox, func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 10, jetstream.DiscardOld }, []string{"max_msgs is 10 with discard DiscardOld"}},
	"inputs dropped as doubles":    {natslog.Names.Inbox, func(c *jetstream.StreamConfig) { c.Duplicates = time.Minute }, []string{"duplicate_window is 1m0s"}},
	"inputs of old copies":         {natslog.Names.Inbox, func(c *jetstream.StreamConfig) { c.AllowDirect = true }, []string{"allow_direct is true"}},
	"a bounded inbox that says so": {natslog.Names.Inbox, func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 }, nil},
	"a log in the administrator's taste": {log0, func(c *jetstream.StreamConfig) {
		c.Description, c.Compression, c.Discard, c.AllowDirect = "mine", jetstream.S2Compression, jetstream.DiscardOld, true
	}, nil},
	"blobs that age":             {blob0, func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, []string{"max_age is 1h0m0s"}},
	"blobs overwritten":          {blob0, func(c *jetstream.StreamConfig) { c.Discard, c.DiscardNewPerSubject = jetstream.DiscardOld, false }, []string{"max_msgs_per_subject is 1 with discard DiscardOld"}},
	"blobs in memory":            {blob0, func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, []string{"storage is Memory"}},
	"blobs bounded":              {blob0, func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 30 }, []string{"max_bytes is 1073741824"}},
	"blobs written late":         {blob0, func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode }, []string{"persist_mode is async"}},
	"snapshots never replaced":   {natslog.Names.Snapshots, func(c *jetstream.StreamConfig) { c.Discard, c.DiscardNewPerSubject = jetstream.DiscardNew, true }, []string{"discard is DiscardNew", "set it to old"}},
	"snapshots not acknowledged": {natslog.Names.Snapshots, func(c *jetstream.StreamConfig) { c.NoAck = true }, []string{"no_ack is true"}},
	"snapshots in the administrator's taste": {natslog.Names.Snapshots, func(c *jetstream.StreamConfig) {
		c.Storage, c.PersistMode, c.MaxAge, c.MaxBytes, c.AllowDirect = jetstream.MemoryStorage, jetstream.DefaultPersistMode, time.Hour, 1<<20, false
	}, nil},
	"publishers that purge":      {natslog.Names.Inbox, func(c *jetstream.StreamConfig) { c.AllowRollup = true }, []string{"allow_rollup_hdrs is true"}},
	"publishers that let expire": {natslog.Names.Inbox, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }, []string{"allow_msg_ttl is true"}},
	"frames that expire":         {log0, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }, []string{"allow_msg_ttl is true"}},
	"publishers that schedule": {natslog.Names.DeadLetters, func(c *jetstream.StreamConfig) {
		c.AllowMsgSchedules, c.AllowRollup, c.Discard = true, true, jetstream.DiscardOld
	}, []string{"allow_msg_schedules is true"}},
	"a log told to others": {log0, func(c *jetstream.StreamConfig) {
		c.RePublish = &jetstream.RePublish{Source: ">", Destination: "copy.>"}
	}, []string{"republish is set", "copy.>"}},
	"dead letters kept longer": {natslog.Names.DeadLetters, func(c *jetstream.StreamConfig) { c.MaxAge *= 2 }, nil},
}

func blob0(n natslog.Names) string { return n.Blobs(0) }

func log0(n natslog.Names) string { return n.Log(0) }

func TestOpenRefusesDangerousStreams(t *testing.T) {
	c := natslog.Config{Subjects: freshRoot(), Conns: []*nats.Conn{connect(t)}, Logger: quiet}
	ctx, js := context.Background(), jetStream(t, c)
	t.Cleanup(func() { removeStreams(t, c) })
	if _, err := natslog.Open(ctx, c); err != nil {
		t.Fatal(err)
	}
	for what, d := range dangerous {
		name := d.stream(natslog.NamesOf(c.Subjects))
		have, err := js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		good := have.CachedInfo().Config
		spoilt := good
		d.spoil(&spoilt)
		recreate(t, js, spoilt)
		_, err = natslog.Open(ctx, c)
		if (err == nil) != (d.named == nil) {
			t.Errorf("%s: %v", what, err)
		}
		for _, part := range append(d.named, name) {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", what, err, part)
			}
		}
		recreate(t, js, good)
	}
}

func recreate(t *testing.T, js jetstream.JetStream, c jetstream.StreamConfig) {
	t.Helper()
	sealed := c.Sealed
	c.Sealed = false // cannot be created so
	err := js.DeleteStream(context.Background(), c.Name)
	if err == nil {
		_, err = js.CreateStream(context.Background(), c)
	}
	if err == nil && sealed {
		c.Sealed = true
		_, err = js.UpdateStream(context.Background(), c)
	}
	if err != nil {
		t.Fatalf("recreate %s: %v", c.Name, err)
	}
}

func TestOpenListsAllThatIsWrong(t *testing.T) {
	c := natslog.Config{Subjects: freshRoot(), Conns: []*nats.Conn{connect(t)}, Logger: quiet}
	js, names := jetStream(t, c), natslog.NamesOf(c.Subjects)
	t.Cleanup(func() { removeStreams(t, c) })
	for _, name := range []string{names.Log(0), names.Log(63)} {
		if _, err := js.CreateStream(context.Background(), jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}, MaxAge: time.Hour, Storage: jetstream.MemoryStorage}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := natslog.Open(context.Background(), c)
	for _, part := range []string{names.Log(0), names.Log(63), "max_age", "storage", "subjects"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}

func TestOpenByManyNodesAtOnce(t *testing.T) {
	c := natslog.Config{Subjects: freshRoot(), Conns: []*nats.Conn{connect(t)}, Logger: quiet}
	t.Cleanup(func() { removeStreams(t, c) })
	var wg sync.WaitGroup
	for range 5 {
		node := c
		node.Conns = []*nats.Conn{connect(t)}
		wg.Go(func() {
			if _, err := natslog.Open(context.Background(), node); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestOpenRefusesWhatItCannotUse(t *testing.T) {
	buffered := connect(t, nats.ReconnectBufSize(1<<20))
	for what, c := range map[string]natslog.Config{
		"no connection":      {},
		"a reconnect buffer": {Conns: []*nats.Conn{buffered}, Subjects: freshRoot()},
		"a root of two":      {Conns: []*nats.Conn{connect(t)}, Subjects: messages.Subjects{Root: "a.b"}},
	} {
		if _, err := natslog.Open(context.Background(), c); err == nil {
			t.Errorf("%s: opened", what)
		}
	}
}

// The server must put each input and command under the partition that Go computes.
func TestInboxTransform(t *testing.T) {
	_, c := open(t, 1)
	ctx, js := context.Background(), jetStream(t, c)
	inbox, err := js.Stream(ctx, natslog.NamesOf(c.Subjects).Inbox())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[messages.Partition]bool)
	for i := range 300 {
		a := messages.AgentID{Tenant: fmt.Sprint("t", i%7), Kind: fmt.Sprint("kind_", i%3), Key: fmt.Sprint("k=", i)}
		seen[a.Partition()] = true
		for family, subject := range map[string]string{"in": c.Subjects.In(a), "ctl": c.Subjects.Ctl(a)} {
			ack, err := js.Publish(ctx, subject, []byte("hello"))
			if err != nil {
				t.Fatal(err)
			}
			m, err := inbox.GetMsg(ctx, ack.Sequence)
			if err != nil {
				t.Fatal(err)
			}
			if in, got, err := c.Subjects.ParseInbox(m.Subject); err != nil || got != a || in != family {
				t.Fatalf("%s is stored as %s: %s of %s, %v", subject, m.Subject, in, got, err)
			}
		}
	}
	if len(seen) < 60 {
		t.Errorf("300 agents fell into %d partitions only", len(seen))
	}
	forgotten := c.Subjects.Any("in")[:len(c.Subjects.Any("in"))-1] + "assistant.a1"
	if ack, err := js.Publish(ctx, forgotten, nil); err != nil {
		t.Errorf("an input without tenant is not taken: %v", err)
	} else if m, err := inbox.GetMsg(ctx, ack.Sequence); err != nil || m.Subject != forgotten {
		t.Errorf("an input without tenant is stored as %v, %v", m, err)
	}
}

// TestWideInbox holds that a work queue which takes messages for any partition, as the first
// ones did, is used as it is, and that it is said what to change.
func TestWideInbox(t *testing.T) {
	_, c := open(t, 1)
	ctx, js, names := t.Context(), jetStream(t, c), natslog.NamesOf(c.Subjects)
	inbox, err := js.Stream(ctx, names.Inbox())
	if err != nil {
		t.Fatal(err)
	}
	cfg := inbox.CachedInfo().Config
	cfg.Subjects = []string{c.Subjects.Any("in"), c.Subjects.Any("ctl"), c.Subjects.Any("inq")}
	if _, err := js.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	log, err := natslog.Open(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	found := log.Unsound(ctx)
	if len(found) != 1 || !strings.Contains(found[0].Error(), names.Inbox()) || !strings.Contains(found[0].Error(), "inq.63.>") {
		t.Errorf("doctor finds %+v", found)
	}
}
