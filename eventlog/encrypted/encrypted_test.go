package encrypted_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

var (
	ctx = context.Background()
	ada = logtest.Agent("ada")
	bob = logtest.Agent("bob")
)

// key returns a wrapping key whose bytes are all b.
func key(b byte) (k encrypted.Key) {
	for i := range k {
		k[i] = b
	}
	return k
}

func keys(t *testing.T, bucket encrypted.Bucket, ring ...encrypted.Key) *encrypted.Keys {
	t.Helper()
	k, err := encrypted.Open(ctx, bucket, ring...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestLog(t *testing.T) {
	logtest.Run(t, func(t *testing.T) logtest.Opened {
		log := newEncrypted(keys(t, &encrypted.Memory{}, key(1)))
		return logtest.Opened{Store: log.Store(), Feed: log, Encrypted: true}
	})
}

// newEncrypted returns an encrypted log on a new one in memory.
func newEncrypted(k *encrypted.Keys) *encrypted.Log {
	inner := memlog.New()
	return encrypted.New(inner.Store(), inner, k)
}

const secret = "the launch code is 4711"

// entry returns an entry with the secret in an event and in its cause.
func entry(t *testing.T, a messages.AgentID, tail eventlog.Position) eventlog.Entry {
	e := logtest.Entry(t, a, tail, messages.InputAccepted{Input: "u1", Content: messages.TextContent(secret)}, messages.CommandNoop{Reason: secret})
	e.Frame.Cause = messages.Cause{Type: "input", ID: "u1", Endpoint: "in", By: "carol " + secret, Account: secret, Reason: secret}
	return logtest.Encode(t, e)
}

func read(log eventlog.Reader, a messages.AgentID) (frames []*messages.Frame, err error) {
	for rec, err := range log.Read(ctx, a, eventlog.Range{}) {
		if err != nil {
			return frames, err
		}
		frames = append(frames, rec.Frame)
	}
	return frames, nil
}

// raw returns an agent's frames as the wrapped log stores them.
func raw(t *testing.T, log eventlog.Reader, a messages.AgentID) []*messages.Frame {
	t.Helper()
	frames, err := read(log, a)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// Frames are read as they were appended, and are stored encrypted. Appending an entry twice stores it
// once.
func TestFramesRoundTrip(t *testing.T) {
	inner := memlog.New()
	log := encrypted.New(inner.Store(), inner, keys(t, &encrypted.Memory{}, key(1)))
	e := entry(t, ada, eventlog.Position{})
	tail, err := log.Append(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := log.Append(ctx, e); err != nil || again != tail {
		t.Errorf("same entry again: got %+v, error %v, want %+v", again, err, tail)
	}
	if _, err := log.Append(ctx, entry(t, ada, tail)); err != nil {
		t.Fatal(err)
	}
	frames, err := read(log, ada)
	if err != nil || len(frames) != 2 {
		t.Fatalf("frames: got %d, error %v, want 2", len(frames), err)
	}
	got := *frames[0]
	got.KeyID, got.Time = "", e.Frame.Time
	if !reflect.DeepEqual(&got, e.Frame) {
		t.Errorf("got  %+v\nwant %+v", &got, e.Frame)
	}
	for _, f := range raw(t, inner, ada) {
		if !f.Encrypted() || f.KeyID == "" || strings.Contains(fmt.Sprintf("%+v", f), "launch") {
			t.Errorf("stored frame: got %+v, want it encrypted", f)
		}
		for _, ev := range f.Events {
			if bytes.Contains(ev.(messages.EncryptedEvent).Data, []byte("launch")) {
				t.Errorf("stored %s: got plain data, want it encrypted", ev.EventType())
			}
		}
	}
}

// Events that end an agent or name its owner are not encrypted.
func TestPublicEventsAreNotEncrypted(t *testing.T) { // A108
	inner := memlog.New()
	log := encrypted.New(inner.Store(), inner, keys(t, &encrypted.Memory{}, key(1)))
	var tail eventlog.Position
	for _, ev := range []messages.Event{messages.AgentCreated{}, messages.AgentDeleted{}, messages.AgentActivated{Epoch: 2}} {
		var err error
		if tail, err = log.Append(ctx, logtest.Entry(t, ada, tail, ev)); err != nil {
			t.Fatal(err)
		}
	}
	var plain []bool
	for _, f := range raw(t, inner, ada) {
		plain = append(plain, !f.Encrypted())
	}
	if fmt.Sprint(plain) != "[false true true]" {
		t.Errorf("plain frames: got %v, want [false true true]", plain)
	}
}

// Data that was stored before encryption was switched on can be read after it. Without a key,
// encrypted frames are reported as damaged.
func TestPlainDataStaysReadable(t *testing.T) {
	inner, bucket := memlog.New(), &encrypted.Memory{}
	plain := encrypted.New(inner.Store(), inner, nil)
	tail, err := plain.Append(ctx, entry(t, ada, eventlog.Position{}))
	if err != nil {
		t.Fatal(err)
	}
	blob, err := plain.PutBlob(ctx, ada, strings.NewReader(secret))
	if err != nil || blob.Stored != "" {
		t.Fatalf("plain blob: got %+v, error %v", blob, err)
	}
	if err := plain.PutSnapshot(ctx, ada, "s", []byte(secret)); err != nil {
		t.Fatal(err)
	}
	log := encrypted.New(inner.Store(), inner, keys(t, bucket, key(1)))
	if _, err = log.Append(ctx, entry(t, ada, tail)); err != nil {
		t.Fatal(err)
	}
	if frames, err := read(log, ada); err != nil || len(frames) != 2 {
		t.Errorf("frames: got %d, error %v, want 2", len(frames), err)
	}
	if got := contents(t, log, ada, blob); got != secret {
		t.Errorf("blob: got %q, want %q", got, secret)
	}
	if got, err := log.Snapshot(ctx, ada, "s"); err != nil || string(got) != secret {
		t.Errorf("snapshot: got %q, error %v, want %q", got, err, secret)
	}
	frames, err := read(plain, ada)
	var damage *eventlog.DamageError
	if len(frames) != 1 || !errors.Is(err, encrypted.ErrOff) || !errors.As(err, &damage) || damage.Event != 3 {
		t.Errorf("without a key: got %d frames, error %v, want 1 and damage at event 3", len(frames), err)
	}
}

func contents(t *testing.T, log eventlog.Blobs, a messages.AgentID, b messages.Blob) string {
	t.Helper()
	r, err := log.Blob(ctx, a, b)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// Once a key is shredded, its agent's frames, blobs and snapshots cannot be read, and other agents
// are not affected. An agent created again has a new key.
func TestShredded(t *testing.T) { // A108
	inner, bucket := memlog.New(), &encrypted.Memory{}
	k := keys(t, bucket, key(1))
	log, other := encrypted.New(inner.Store(), inner, k), encrypted.New(inner.Store(), inner, keys(t, bucket, key(1)))
	tail, err := log.Append(ctx, entry(t, ada, eventlog.Position{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(ctx, entry(t, bob, eventlog.Position{})); err != nil {
		t.Fatal(err)
	}
	blob, err := log.PutBlob(ctx, ada, strings.NewReader(secret))
	if err != nil {
		t.Fatal(err)
	}
	if err := log.PutSnapshot(ctx, ada, "s", []byte(secret)); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Head(ctx, ada); err != nil { // caches the old key
		t.Fatal(err)
	}
	old := raw(t, inner, ada)[0].KeyID
	no := func(context.Context) (bool, error) { return false, nil }
	yes := func(context.Context) (bool, error) { return true, nil }
	if had, err := k.Shred(ctx, ada, no); had || err != nil {
		t.Errorf("shred, not confirmed: got %t, error %v, want false", had, err)
	}
	if _, err := read(log, ada); err != nil {
		t.Errorf("read after a shred that was not confirmed: got error %v, want none", err)
	}
	if had, err := k.Shred(ctx, ada, yes); !had || err != nil {
		t.Fatalf("shred: got %t, error %v, want true", had, err)
	}
	if had, err := k.Shred(ctx, ada, yes); had || err != nil {
		t.Errorf("second shred: got %t, error %v, want false", had, err)
	}
	if _, err := read(log, ada); !errors.Is(err, encrypted.ErrNoKey) {
		t.Errorf("frames: got error %v, want %v", err, encrypted.ErrNoKey)
	}
	if _, err := log.Blob(ctx, ada, blob); messages.AsError(err).Code != messages.Damaged {
		t.Errorf("blob: got error %v, want %s", err, messages.Damaged)
	}
	if got, err := log.Snapshot(ctx, ada, "s"); got != nil || err != nil {
		t.Errorf("snapshot: got %q, error %v, want none", got, err)
	}
	if _, err := read(log, bob); err != nil {
		t.Errorf("frames of another agent: got error %v, want none", err)
	}
	// Messages that were read before the delete report ErrShredded, not damage.
	var early []eventlog.Stored
	for s, err := range log.ReadShard(ctx, int(ada.Partition())%log.Shards(), 0) {
		if err != nil || s.Agent == (messages.AgentID{}) {
			break
		}
		early = append(early, s)
	}
	frame := func() (err error) {
		for _, s := range early {
			if s.Agent == ada {
				_, err = s.Frame()
			}
		}
		return err
	}
	if err := frame(); !errors.Is(err, encrypted.ErrNoKey) {
		t.Errorf("frame without a key: got error %v, want %v", err, encrypted.ErrNoKey)
	}
	if tail, err = inner.Append(ctx, logtest.Encode(t, logtest.Entry(t, ada, tail, messages.AgentDeleted{}))); err != nil {
		t.Fatal(err)
	}
	if err := inner.Purge(ctx, ada, tail.Seq); err != nil {
		t.Fatal(err)
	}
	var damage *eventlog.DamageError
	if err := frame(); !errors.Is(err, messages.ErrShredded) || errors.As(err, &damage) {
		t.Errorf("frame of the deleted agent: got error %v, want %v", err, messages.ErrShredded)
	}
	// The agent created again has a new key, also at a node that cached the old one.
	if _, err := other.Head(ctx, ada); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Append(ctx, entry(t, ada, tail)); err != nil {
		t.Fatal(err)
	}
	if all := raw(t, inner, ada); all[len(all)-1].KeyID == old {
		t.Errorf("key of the new agent: got the old one %s, want another", old)
	}
}

// unavailable is a log that can be read once.
type unavailable struct {
	eventlog.Log
	read bool
}

func (l *unavailable) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	if l.read {
		return func(yield func(eventlog.Recorded, error) bool) {
			yield(eventlog.Recorded{}, fmt.Errorf("read: %w", eventlog.ErrUnavailable))
		}
	}
	l.read = true
	return l.Log.Read(ctx, a, r)
}

// While the log is unavailable, a frame without a key is reported as neither damaged nor deleted,
// since the log decides which it is.
func TestMissingKeyWhileLogUnavailable(t *testing.T) { // A30, A108
	bucket, inner := &encrypted.Memory{}, memlog.New()
	k := keys(t, bucket, key(1))
	if _, err := encrypted.New(inner.Store(), inner, k).Append(ctx, entry(t, ada, eventlog.Position{})); err != nil {
		t.Fatal(err)
	}
	if had, err := k.Shred(ctx, ada, func(context.Context) (bool, error) { return true, nil }); !had || err != nil {
		t.Fatalf("shred: got %t, error %v, want true", had, err)
	}
	damage := new(eventlog.DamageError)
	fresh := func() *encrypted.Keys { return keys(t, bucket, key(1)) }
	if _, err := read(encrypted.New(eventlog.Store{Log: &unavailable{Log: inner}}, inner, fresh()), ada); !errors.Is(err, eventlog.ErrUnavailable) || errors.As(err, &damage) || errors.Is(err, messages.ErrShredded) {
		t.Errorf("log unavailable: got error %v, want %v alone", err, eventlog.ErrUnavailable)
	}
	if _, err := read(encrypted.New(inner.Store(), inner, fresh()), ada); !errors.As(err, &damage) || !errors.Is(err, encrypted.ErrNoKey) {
		t.Errorf("log available: got error %v, want damage and %v", err, encrypted.ErrNoKey)
	}
}

// removing is a log that removes a frame once it was read.
type removing struct {
	eventlog.Log
	remove func()
}

func (l removing) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		rec, err := eventlog.First(l.Log.Read(ctx, a, r))
		if err == nil {
			l.remove()
		}
		yield(rec, err)
	}
}

// A frame is damaged without its key, unless a delete has removed it meanwhile: then the agent
// is to be read again.
func TestRemovedWhileItIsRead(t *testing.T) { // A30, A108
	bucket, inner := &encrypted.Memory{}, memlog.New()
	k := keys(t, bucket, key(1))
	log := encrypted.New(inner.Store(), inner, k)
	tail, err := log.Append(ctx, entry(t, ada, eventlog.Position{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Shred(ctx, ada, func(context.Context) (bool, error) { return true, nil }); err != nil {
		t.Fatal(err)
	}
	damage := new(eventlog.DamageError)
	if frames, err := read(log, ada); !errors.As(err, &damage) || !errors.Is(err, encrypted.ErrNoKey) || frames != nil {
		t.Errorf("without its key: got %+v, error %v, want damage and %v", frames, err, encrypted.ErrNoKey)
	}
	log = encrypted.New(eventlog.Store{Log: removing{inner, sync.OnceFunc(func() {
		end, err := inner.Append(ctx, logtest.Encode(t, logtest.Entry(t, ada, tail, messages.AgentDeleted{})))
		if err == nil {
			err = inner.Purge(ctx, ada, end.Seq)
		}
		if err != nil {
			t.Error(err)
		}
	})}}, inner, k)
	if frames, err := read(log, ada); messages.AsError(err).Code != messages.Unavailable || errors.As(err, &damage) || frames != nil {
		t.Errorf("removed while it is read: got %+v, error %v, want %s", frames, err, messages.Unavailable)
	}
}

// A snapshot is stored encrypted and can be read under its own name only.
func TestSnapshotsAreBoundToTheirName(t *testing.T) {
	inner := memlog.New()
	log := encrypted.New(inner.Store(), inner, keys(t, &encrypted.Memory{}, key(1)))
	if err := log.PutSnapshot(ctx, ada, "s", []byte(secret)); err != nil {
		t.Fatal(err)
	}
	stored, err := inner.Snapshot(ctx, ada, "s")
	if err != nil || bytes.Contains(stored, []byte("launch")) {
		t.Errorf("stored snapshot: got %q, error %v, want it encrypted", stored, err)
	}
	if got, err := log.Snapshot(ctx, ada, "s"); string(got) != secret || err != nil {
		t.Errorf("snapshot: got %q, error %v, want %q", got, err, secret)
	}
	if err := inner.PutSnapshot(ctx, ada, "t", stored); err != nil {
		t.Fatal(err)
	}
	if got, err := log.Snapshot(ctx, ada, "t"); got != nil || err != nil {
		t.Errorf("under another name: got %q, error %v, want none", got, err)
	}
}

func TestBlobs(t *testing.T) { // A36
	inner := memlog.New()
	log := encrypted.New(inner.Store(), inner, keys(t, &encrypted.Memory{}, key(1)))
	const segment = 64 << 10
	for _, size := range []int{0, 1, segment - 1, segment, segment + 1, 3 * segment, 3*segment + 5} {
		whole := strings.Repeat(secret, size/len(secret)+1)[:size]
		b, err := log.PutBlob(ctx, ada, strings.NewReader(whole))
		if err != nil {
			t.Fatal(size, err)
		}
		again, err := log.PutBlob(ctx, ada, strings.NewReader(whole))
		if err != nil || again != b || b.SHA256 != messages.DigestOf([]byte(whole)) || b.Size != int64(size) {
			t.Errorf("%d bytes: got %+v, then %+v, error %v", size, b, again, err)
		}
		if got := contents(t, log, ada, b); got != whole {
			t.Errorf("blob of %d bytes: got %d other bytes", size, len(got))
		}
		for kept, err := range inner.ListBlobs(ctx, ada) {
			if err != nil {
				t.Fatal(err)
			}
			if kept.SHA256 == b.Kept() {
				stored := contents(t, inner, ada, kept)
				if strings.Contains(stored, "launch") {
					t.Errorf("stored blob of %d bytes: got plain data, want it encrypted", size)
				}
				wantDamaged(t, log, inner, b, stored)
			}
		}
	}
	var n int
	for range inner.ListBlobs(ctx, ada) {
		n++
	}
	if n != 7 {
		t.Errorf("stored blobs: got %d, want 7", n)
	}
}

// wantDamaged stores changed forms of a blob and checks that each is read as damaged.
func wantDamaged(t *testing.T, log *encrypted.Log, inner eventlog.Blobs, b messages.Blob, stored string) {
	t.Helper()
	const head, encryptedSegment = 24, 64<<10 + 16
	flipped := []byte(stored)
	flipped[len(flipped)-1] ^= 1
	changed := map[string]string{"one bit": string(flipped), "last byte removed": stored[:len(stored)-1], "cut to 10 bytes": stored[:10]}
	if body := stored[head:]; len(body) > 2*encryptedSegment {
		changed["segments swapped"] = stored[:head] + body[encryptedSegment:2*encryptedSegment] + body[:encryptedSegment] + body[2*encryptedSegment:]
		changed["first segment removed"] = stored[:head] + body[encryptedSegment:]
	}
	for what, bytes := range changed {
		other, err := inner.PutBlob(ctx, ada, strings.NewReader(bytes))
		if err != nil {
			t.Fatal(err)
		}
		forged := b
		forged.Stored = other.SHA256
		if r, err := log.Blob(ctx, ada, forged); err == nil {
			_, err = io.ReadAll(r)
			if err == nil || messages.AsError(err).Code != messages.Damaged {
				t.Errorf("%d bytes, %s: got error %v, want %s", b.Size, what, err, messages.Damaged)
			}
		}
		if err := inner.RemoveBlobs(ctx, ada, eventlog.All, other.SHA256); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWrongWrappingKey(t *testing.T) {
	bucket := &encrypted.Memory{}
	keys(t, bucket, key(1))
	names, _ := bucket.List(ctx)
	_, err := encrypted.Open(ctx, bucket, key(2))
	if err == nil || !strings.Contains(err.Error(), key(1).ID()) || !strings.Contains(err.Error(), key(2).ID()) {
		t.Errorf("open: got error %v, want both key ids", err)
	}
	if strings.Contains(fmt.Sprint(err), hex.EncodeToString([]byte{1, 1, 1})) {
		t.Errorf("open: got error %v, want no key in it", err)
	}
	if after, _ := bucket.List(ctx); fmt.Sprint(after) != fmt.Sprint(names) {
		t.Errorf("bucket: got %v, want %v", after, names)
	}
	if ids, err := encrypted.WrappingKeys(ctx, bucket); err != nil || fmt.Sprint(ids) != fmt.Sprint([]string{key(1).ID()}) {
		t.Errorf("wrapping keys: got %v, error %v, want %s", ids, err, key(1).ID())
	}
}

func TestRotate(t *testing.T) {
	inner, bucket := memlog.New(), &encrypted.Memory{}
	old := encrypted.New(inner.Store(), inner, keys(t, bucket, key(1)))
	for _, a := range []messages.AgentID{ada, bob} {
		if _, err := old.Append(ctx, entry(t, a, eventlog.Position{})); err != nil {
			t.Fatal(err)
		}
	}
	both := keys(t, bucket, key(2), key(1))
	if _, err := read(encrypted.New(inner.Store(), inner, both), ada); err != nil { // wraps the key again
		t.Fatal(err)
	}
	if n, err := both.Rotate(ctx); n != 1 || err != nil {
		t.Errorf("rotate: got %d, error %v, want 1", n, err)
	}
	if _, err := encrypted.Open(ctx, bucket, key(1)); err == nil {
		t.Error("open with the old key: got no error, want one")
	}
	log := encrypted.New(inner.Store(), inner, keys(t, bucket, key(2)))
	for _, a := range []messages.AgentID{ada, bob} {
		if _, err := read(log, a); err != nil {
			t.Errorf("read %s: %v", a, err)
		}
	}
}

// contested is a bucket in which another node is faster: it does beside each Put of a key, or of
// what the store's wrapping keys are, before that is stored, what is left to do.
type contested struct {
	encrypted.Bucket
	checks bool
	beside []func(name string)
}

func (b *contested) Put(ctx context.Context, name string, value []byte, revision uint64) error {
	if strings.Contains(name, ".") != b.checks && len(b.beside) > 0 {
		b.beside[0](name)
		b.beside = b.beside[1:]
	}
	return b.Bucket.Put(ctx, name, value, revision)
}

// A key that another node wraps again or deletes at the same time does not stop the rotation.
func TestRotateBesideOthers(t *testing.T) { // A108
	for what, c := range map[string]struct {
		beside  func(t *testing.T, bucket encrypted.Bucket, name string)
		times   int
		wrapped int
		err     error
	}{
		"wrapped by a reader": {func(t *testing.T, bucket encrypted.Bucket, _ string) {
			if _, err := keys(t, bucket, key(2), key(1)).Rotate(ctx); err != nil {
				t.Error(err)
			}
		}, 1, 0, nil},
		"deleted": {func(t *testing.T, bucket encrypted.Bucket, name string) {
			_, revision, err := bucket.Get(ctx, name)
			if err == nil {
				err = bucket.Erase(ctx, name, revision)
			}
			if err != nil {
				t.Error(err)
			}
		}, 1, 0, nil},
		"changed twice":  {putAgain, 2, 1, nil},
		"always changed": {putAgain, 3, 0, encrypted.ErrChanged},
	} {
		inner, bucket := memlog.New(), &encrypted.Memory{}
		if _, err := encrypted.New(inner.Store(), inner, keys(t, bucket, key(1))).Append(ctx, entry(t, ada, eventlog.Position{})); err != nil {
			t.Fatal(err)
		}
		shared := &contested{Bucket: bucket}
		k := keys(t, shared, key(2), key(1))
		for range c.times {
			shared.beside = append(shared.beside, func(name string) { c.beside(t, bucket, name) })
		}
		if n, err := k.Rotate(ctx); n != c.wrapped || !errors.Is(err, c.err) || len(shared.beside) != 0 {
			t.Errorf("%s: got %d, error %v, %d writes of others left, want %d and error %v", what, n, err, len(shared.beside), c.wrapped, c.err)
		}
	}
}

// Two nodes that rotate at the same time both come to their end.
func TestRotateTwice(t *testing.T) { // A108
	inner, bucket := memlog.New(), &encrypted.Memory{}
	if _, err := encrypted.New(inner.Store(), inner, keys(t, bucket, key(1))).Append(ctx, entry(t, ada, eventlog.Position{})); err != nil {
		t.Fatal(err)
	}
	shared := &contested{Bucket: bucket, checks: true}
	k := keys(t, shared, key(2), key(1))
	shared.beside = append(shared.beside, func(string) {
		if _, err := keys(t, bucket, key(2), key(1)).Rotate(ctx); err != nil {
			t.Error(err)
		}
	})
	if n, err := k.Rotate(ctx); n != 1 || err != nil || len(shared.beside) != 0 {
		t.Errorf("got %d, error %v, %d writes of others left", n, err, len(shared.beside))
	}
}

// putAgain stores the value that a name has, again.
func putAgain(t *testing.T, bucket encrypted.Bucket, name string) {
	value, revision, err := bucket.Get(ctx, name)
	if err == nil {
		err = bucket.Put(ctx, name, value, revision)
	}
	if err != nil {
		t.Error(err)
	}
}

// revisionOf returns the revision of ada's key, 0 without one.
func revisionOf(t *testing.T, b encrypted.Bucket) uint64 {
	t.Helper()
	_, revision, err := encrypted.Copy(ctx, b, ada)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// A key that is put back while its agent is deleted does not stay in the bucket, although the delete
// found no key to erase.
func TestPutBackDuringDelete(t *testing.T) { // A108
	from := &encrypted.Memory{}
	log := newEncrypted(keys(t, from, key(1)))
	if _, err := log.Append(ctx, entry(t, ada, eventlog.Position{})); err != nil {
		t.Fatal(err)
	}
	copied, revision, err := encrypted.Copy(ctx, from, ada)
	marks, err2 := encrypted.Marks(ctx, from)
	if revision == 0 || err != nil || err2 != nil || copied.Unwraps(key(1)) != nil || copied.Unwraps(key(2)) == nil {
		t.Fatalf("copy: got %+v at revision %d, errors %v and %v", copied, revision, err, err2)
	}
	lost := errors.New("the connection was lost")
	type answer struct { // of mine
		mine bool
		err  error
	}
	for what, c := range map[string]struct {
		answers []answer
		put     encrypted.Put
		stored  bool
		err     error
	}{
		"agent exists":         {[]answer{{mine: true}, {mine: true}}, encrypted.Restored, true, nil},
		"deleted before":       {[]answer{{}}, encrypted.Unused, false, nil},
		"deleted meanwhile":    {[]answer{{mine: true}, {}}, encrypted.Unused, false, nil},
		"error after the put":  {[]answer{{mine: true}, {err: lost}}, encrypted.Unused, false, lost},
		"error before the put": {[]answer{{err: lost}}, encrypted.Unused, false, lost},
	} {
		to := &encrypted.Memory{}
		p, err := encrypted.PutBack(ctx, to, marks)
		if err != nil {
			t.Fatal(err)
		}
		putCtx, cancel := context.WithCancel(ctx)
		put, err := p.Put(putCtx, copied, func(ctx context.Context) (bool, error) {
			s := c.answers[0]
			if c.answers = c.answers[1:]; revisionOf(t, to) != 0 {
				cancel() // the put is completed after its context ends
			}
			return s.mine, errors.Join(s.err, ctx.Err())
		})
		cancel()
		if stored := revisionOf(t, to) != 0; put != c.put || stored != c.stored || !errors.Is(err, c.err) {
			t.Errorf("%s: got %d, stored %t, error %v, want %d, stored %t, error %v", what, put, stored, err, c.put, c.stored, c.err)
		}
	}
}

func TestParseKeys(t *testing.T) {
	k := key(7)
	for _, text := range []string{hex.EncodeToString(k[:]), "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=", " BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc\n"} {
		got, err := encrypted.ParseKeys(text)
		if err != nil || len(got) != 1 || got[0] != k {
			t.Errorf("%q: got %v, error %v, want %v", text, got, err, k)
		}
	}
	if got, err := encrypted.ParseKeys(hex.EncodeToString(k[:]) + "," + strings.Repeat("01", 32)); err != nil || len(got) != 2 || got[1] != key(1) {
		t.Errorf("two keys: got %v, error %v, want the second of 01 bytes", got, err)
	}
	for _, text := range []string{"", "secret-word", strings.Repeat("01", 31), strings.Repeat("01", 33)} {
		if got, err := encrypted.ParseKeys(text); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: got %v, error %v, want an error without the text", text, got, err)
		}
	}
}
