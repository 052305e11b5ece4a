package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
)

func TestBucket(t *testing.T) { // A108
	ctx := context.Background()
	l, c := open(t, 1)
	if b, err := l.FindKeys(ctx); b != nil || err != nil {
		t.Fatalf("found a bucket before one was made: %v, %v", b, err)
	}
	b, err := l.MakeKeys(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	js := jetStream(t, c)
	t.Cleanup(func() { _ = js.DeleteStream(context.Background(), natslog.KeysOf(c.Subjects)) })
	if again, err := l.MakeKeys(ctx, 1); again == nil || err != nil {
		t.Fatal("made twice:", err)
	}
	if found, err := l.FindKeys(ctx); found == nil || err != nil {
		t.Fatal("not found:", err)
	}
	if _, err := js.KeyValue(ctx, natslog.KeysOf(c.Subjects)[len("KV_"):]); err != nil {
		t.Error("no tool can look at it:", err)
	}
	revision := func(name, want string) uint64 {
		t.Helper()
		value, revision, err := b.Get(ctx, name)
		if err != nil || string(value) != want || (revision == 0) != (want == "") {
			t.Errorf("%s is %q at %d, %v; want %q", name, value, revision, err, want)
		}
		return revision
	}
	put := func(name, value string, over uint64, want error) {
		t.Helper()
		if err := b.Put(ctx, name, []byte(value), over); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("put %q over %d: %v, want %v", value, over, err, want)
		}
	}
	put("t.k.a", "one", 0, nil)
	put("t.k.a", "two", 0, encrypted.ErrChanged)
	first := revision("t.k.a", "one")
	put("t.k.a", "two", first, nil)
	put("t.k.a", "three", first, encrypted.ErrChanged)
	second := revision("t.k.a", "two")
	put("t.k.b", "other", 0, nil)
	info, err := js.Stream(ctx, natslog.KeysOf(c.Subjects))
	if err != nil {
		t.Fatal(err)
	}
	if n := info.CachedInfo().State.Msgs; n != 2 {
		t.Errorf("%d values are kept of two names", n)
	}
	if _, err := info.GetMsg(ctx, first); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Error("what was replaced is still there:", err)
	}
	if names, err := b.List(ctx); err != nil || fmt.Sprint(names) != "[t.k.a t.k.b]" {
		t.Error(names, err)
	}
	for range 2 { // the second time it is gone
		if err := b.Erase(ctx, "t.k.a", second); err != nil {
			t.Error(err)
		}
		revision("t.k.a", "")
	}
	put("t.k.a", "anew", 0, nil)
	if err := b.Erase(ctx, "t.k.a", second); err != nil {
		t.Error(err)
	}
	revision("t.k.a", "anew")
	revision("t.k.b", "other")
}

func TestEncryptedLog(t *testing.T) {
	t.Parallel()
	s := suite{subjects: freshRoot()}
	t.Cleanup(func() { s.remove(t) })
	logtest.Run(t, func(t *testing.T) logtest.Opened {
		l, c := s.open(t)
		bucket, err := l.MakeKeys(context.Background(), 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = jetStream(t, c).DeleteStream(context.Background(), natslog.KeysOf(c.Subjects)) })
		keys, err := encrypted.Open(context.Background(), bucket, encrypted.Key{1})
		if err != nil {
			t.Fatal(err)
		}
		log := encrypted.New(l.Store(), l, keys)
		return logtest.Opened{Store: log.Store(), Feed: log, Encrypted: true, Emptied: true}
	})
}
