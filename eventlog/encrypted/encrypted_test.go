package encrypted_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
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

// key is a wrapping key made of one byte.
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
		return logtest.Opened{Log: encrypted.New(memlog.New(), keys(t, &encrypted.Memory{}, key(1))), Encrypted: true}
	})
}

const secret = "the launch code is 4711"

// entry is a frame that holds the secret in an event and in its cause.
func entry(t *testing.T, a messages.AgentID, tail eventlog.Tail) eventlog.Entry {
	e := logtest.Entry(t, a, tail, messages.InputAccepted{Input: "u1", Content: messages.TextContent(secret)}, messages.CommandNoop{Reason: secret})
	e.Frame.Cause = messages.Cause{Type: "input", ID: "u1", Endpoint: "in", By: "carol " + secret, Account: secret, Reason: secret}
	return logtest.Encode(t, e)
}

func read(log eventlog.Reader, a messages.AgentID) (frames []*messages.Frame, err error) {
	for rec, err := range log.Read(ctx, a, 0) {
		if err != nil {
			return frames, err
		}
		frames = append(frames, rec.Frame)
	}
	return frames, nil
}

// raw is what an agent's log holds in the wrapped log.
func raw(t *testing.T, log eventlog.Reader, a messages.AgentID) []*messages.Frame {
	t.Helper()
	frames, err := read(log, a)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

func TestFramesComeBack(t *testing.T) {
	inner := memlog.New()
	log := encrypted.New(inner, keys(t, &encrypted.Memory{}, key(1)))
	e := entry(t, ada, eventlog.Tail{})
	tail, err := log.Append(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := log.Append(ctx, e); err != nil || again != tail {
		t.Errorf("the same entry again: %+v, %v, was %+v", again, err, tail)
	}
	if _, err := log.Append(ctx, entry(t, ada, tail)); err != nil {
		t.Fatal(err)
	}
	frames, err := read(log, ada)
	if err != nil || len(frames) != 2 {
		t.Fatal(len(frames), err)
	}
	got := *frames[0]
	got.KeyID, got.Time = "", e.Frame.Time
	if !reflect.DeepEqual(&got, e.Frame) {
		t.Errorf("got  %+v\nwant %+v", &got, e.Frame)
	}
	for _, f := range raw(t, inner, ada) {
		if !f.Encrypted() || f.KeyID == "" || strings.Contains(fmt.Sprintf("%+v", f), "launch") {
			t.Errorf("in the wrapped log stands %+v", f)
		}
		for _, ev := range f.Events {
			if bytes.Contains(ev.(messages.EncryptedEvent).Data, []byte("launch")) {
				t.Errorf("%s is plain", ev.EventType())
			}
		}
	}
}

func TestEndsAndOwnersStayClear(t *testing.T) { // A108
	inner := memlog.New()
	log := encrypted.New(inner, keys(t, &encrypted.Memory{}, key(1)))
	var tail eventlog.Tail
	for _, ev := range []messages.Event{messages.AgentCreated{}, messages.AgentDeleted{}, messages.AgentActivated{Epoch: 2}} {
		var err error
		if tail, err = log.Append(ctx, logtest.Entry(t, ada, tail, ev)); err != nil {
			t.Fatal(err)
		}
	}
	var clear []bool
	for _, f := range raw(t, inner, ada) {
		clear = append(clear, !f.Encrypted())
	}
	if fmt.Sprint(clear) != "[false true true]" {
		t.Errorf("clear are %v", clear)
	}
}

func TestWhatWasPlainStaysReadable(t *testing.T) {
	inner, bucket := memlog.New(), &encrypted.Memory{}
	plain := encrypted.New(inner, nil)
	tail, err := plain.Append(ctx, entry(t, ada, eventlog.Tail{}))
	if err != nil {
		t.Fatal(err)
	}
	blob, err := plain.PutBlob(ctx, ada, strings.NewReader(secret))
	if err != nil || blob.Stored != "" {
		t.Fatal(blob, err)
	}
	if err := plain.PutSnapshot(ctx, ada, "s", []byte(secret)); err != nil {
		t.Fatal(err)
	}
	log := encrypted.New(inner, keys(t, bucket, key(1)))
	if _, err = log.Append(ctx, entry(t, ada, tail)); err != nil {
		t.Fatal(err)
	}
	if frames, err := read(log, ada); err != nil || len(frames) != 2 {
		t.Error(len(frames), err)
	}
	if got := contents(t, log, ada, blob); got != secret {
		t.Errorf("the blob holds %q", got)
	}
	if got, err := log.Snapshot(ctx, ada, "s"); err != nil || string(got) != secret {
		t.Errorf("the snapshot holds %q, %v", got, err)
	}
	frames, err := read(plain, ada)
	var damage *eventlog.DamageError
	if len(frames) != 1 || !errors.Is(err, encrypted.ErrOff) || !errors.As(err, &damage) || damage.Event != 3 {
		t.Errorf("without a key: %d frames, %v", len(frames), err)
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

func TestShredded(t *testing.T) { // A108
	inner, bucket := memlog.New(), &encrypted.Memory{}
	k := keys(t, bucket, key(1))
	log, other := encrypted.New(inner, k), encrypted.New(inner, keys(t, bucket, key(1)))
	tail, err := log.Append(ctx, entry(t, ada, eventlog.Tail{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(ctx, entry(t, bob, eventlog.Tail{})); err != nil {
		t.Fatal(err)
	}
	blob, err := log.PutBlob(ctx, ada, strings.NewReader(secret))
	if err != nil {
		t.Fatal(err)
	}
	if err := log.PutSnapshot(ctx, ada, "s", []byte(secret)); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Tail(ctx, ada); err != nil { // it has the old key in memory
		t.Fatal(err)
	}
	old := raw(t, inner, ada)[0].KeyID
	no := func(context.Context) (bool, error) { return false, nil }
	yes := func(context.Context) (bool, error) { return true, nil }
	if had, err := k.Shred(ctx, ada, no); had || err != nil {
		t.Error(had, err)
	}
	if _, err := read(log, ada); err != nil {
		t.Error("the key of somebody else was erased:", err)
	}
	if had, err := k.Shred(ctx, ada, yes); !had || err != nil {
		t.Fatal(had, err)
	}
	if had, err := k.Shred(ctx, ada, yes); had || err != nil {
		t.Error("a second time:", had, err)
	}
	if _, err := read(log, ada); !errors.Is(err, encrypted.ErrNoKey) {
		t.Error(err)
	}
	if _, err := log.Blob(ctx, ada, blob); messages.AsError(err).Code != messages.Damaged {
		t.Error(err)
	}
	if got, err := log.Snapshot(ctx, ada, "s"); got != nil || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := read(log, bob); err != nil {
		t.Error("the neighbour:", err)
	}
	// Whoever has read ahead of a delete is told so, and not of damage.
	var held []eventlog.Stored
	for s, err := range log.ReadShard(ctx, int(ada.Partition())%log.Shards(), 0) {
		if err != nil || s.Agent == (messages.AgentID{}) {
			break
		}
		held = append(held, s)
	}
	why := func() (err error) {
		for _, s := range held {
			if s.Agent == ada {
				_, err = s.Frame()
			}
		}
		return err
	}
	if err := why(); !errors.Is(err, encrypted.ErrNoKey) {
		t.Error("a key that is lost:", err)
	}
	if tail, err = inner.Append(ctx, logtest.Encode(t, logtest.Entry(t, ada, tail, messages.AgentDeleted{}))); err != nil {
		t.Fatal(err)
	}
	if err := inner.Purge(ctx, ada, tail.Seq); err != nil {
		t.Fatal(err)
	}
	var damage *eventlog.DamageError
	if err := why(); !errors.Is(err, messages.ErrShredded) || errors.As(err, &damage) {
		t.Error("what was deleted:", err)
	}
	// A new life has a new key, also at a node that knew the old one.
	if _, err := other.Tail(ctx, ada); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Append(ctx, entry(t, ada, tail)); err != nil {
		t.Fatal(err)
	}
	if all := raw(t, inner, ada); all[len(all)-1].KeyID == old {
		t.Error("a new life is encrypted with the key of the old one")
	}
}

// away is a log that cannot tell what stands at a place.
type away struct{ eventlog.Log }

func (away) FrameAt(context.Context, messages.AgentID, uint64) (eventlog.Recorded, error) {
	return eventlog.Recorded{}, fmt.Errorf("read: %w", eventlog.ErrUnavailable)
}

// Whether an agent has been deleted is not guessed: as long as the log cannot tell,
// a frame without a key is neither damaged nor gone.
func TestAKeyThatIsGoneWhileTheLogIsAway(t *testing.T) { // A30, A108
	bucket, inner := &encrypted.Memory{}, memlog.New()
	k := keys(t, bucket, key(1))
	if _, err := encrypted.New(inner, k).Append(ctx, entry(t, ada, eventlog.Tail{})); err != nil {
		t.Fatal(err)
	}
	if had, err := k.Shred(ctx, ada, func(context.Context) (bool, error) { return true, nil }); !had || err != nil {
		t.Fatal(had, err)
	}
	damage := new(eventlog.DamageError)
	fresh := func() *encrypted.Keys { return keys(t, bucket, key(1)) }
	if _, err := read(encrypted.New(away{inner}, fresh()), ada); !errors.Is(err, eventlog.ErrUnavailable) || errors.As(err, &damage) || errors.Is(err, messages.ErrShredded) {
		t.Error("while the log is away:", err)
	}
	if _, err := read(encrypted.New(inner, fresh()), ada); !errors.As(err, &damage) || !errors.Is(err, encrypted.ErrNoKey) {
		t.Error("when it is back:", err)
	}
}

func TestSnapshotsAndBlobsAreBound(t *testing.T) {
	inner := memlog.New()
	log := encrypted.New(inner, keys(t, &encrypted.Memory{}, key(1)))
	if err := log.PutSnapshot(ctx, ada, "s", []byte(secret)); err != nil {
		t.Fatal(err)
	}
	stored, err := inner.Snapshot(ctx, ada, "s")
	if err != nil || bytes.Contains(stored, []byte("launch")) {
		t.Errorf("%q, %v", stored, err)
	}
	if got, err := log.Snapshot(ctx, ada, "s"); string(got) != secret || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := inner.PutSnapshot(ctx, ada, "t", stored); err != nil {
		t.Fatal(err)
	}
	if got, err := log.Snapshot(ctx, ada, "t"); got != nil || err != nil {
		t.Errorf("under another name: %q, %v", got, err)
	}
}

func TestBlobs(t *testing.T) { // A36
	inner := memlog.New()
	log := encrypted.New(inner, keys(t, &encrypted.Memory{}, key(1)))
	const segment = 64 << 10
	for _, size := range []int{0, 1, segment - 1, segment, segment + 1, 3 * segment, 3*segment + 5} {
		whole := strings.Repeat(secret, size/len(secret)+1)[:size]
		b, err := log.PutBlob(ctx, ada, strings.NewReader(whole))
		if err != nil {
			t.Fatal(size, err)
		}
		again, err := log.PutBlob(ctx, ada, strings.NewReader(whole))
		if err != nil || again != b || b.SHA256 != messages.DigestOf([]byte(whole)) || b.Size != int64(size) {
			t.Errorf("%d: %+v, then %+v, %v", size, b, again, err)
		}
		if got := contents(t, log, ada, b); got != whole {
			t.Errorf("%d bytes came back as %d", size, len(got))
		}
		for kept, err := range inner.ListBlobs(ctx, ada) {
			if err != nil {
				t.Fatal(err)
			}
			if kept.SHA256 == b.Kept() {
				stored := contents(t, inner, ada, kept)
				if strings.Contains(stored, "launch") {
					t.Errorf("%d: the blob is plain", size)
				}
				spoil(t, log, inner, b, stored)
			}
		}
	}
	var n int
	for range inner.ListBlobs(ctx, ada) {
		n++
	}
	if n != 7 {
		t.Errorf("%d blobs are stored", n)
	}
}

// spoil puts changed forms of a stored blob in its place and reads each.
func spoil(t *testing.T, log *encrypted.Log, inner eventlog.Log, b messages.Blob, stored string) {
	t.Helper()
	const head, encryptedSegment = 24, 64<<10 + 16
	flipped := []byte(stored)
	flipped[len(flipped)-1] ^= 1
	changed := map[string]string{"a bit": string(flipped), "the end": stored[:len(stored)-1], "all": stored[:10]}
	if body := stored[head:]; len(body) > 2*encryptedSegment {
		changed["the order"] = stored[:head] + body[encryptedSegment:2*encryptedSegment] + body[:encryptedSegment] + body[2*encryptedSegment:]
		changed["the first"] = stored[:head] + body[encryptedSegment:]
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
				t.Errorf("%d bytes, %s changed: %v", b.Size, what, err)
			}
		}
		if err := inner.RemoveBlobs(ctx, ada, other.SHA256); err != nil {
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
		t.Error(err)
	}
	if strings.Contains(fmt.Sprint(err), hex.EncodeToString([]byte{1, 1, 1})) {
		t.Error("the error shows the key")
	}
	if after, _ := bucket.List(ctx); fmt.Sprint(after) != fmt.Sprint(names) {
		t.Errorf("the bucket held %v and holds %v", names, after)
	}
	if ids, err := encrypted.WrappingKeys(ctx, bucket); err != nil || fmt.Sprint(ids) != fmt.Sprint([]string{key(1).ID()}) {
		t.Error(ids, err)
	}
}

func TestRotate(t *testing.T) {
	inner, bucket := memlog.New(), &encrypted.Memory{}
	old := encrypted.New(inner, keys(t, bucket, key(1)))
	for _, a := range []messages.AgentID{ada, bob} {
		if _, err := old.Append(ctx, entry(t, a, eventlog.Tail{})); err != nil {
			t.Fatal(err)
		}
	}
	both := keys(t, bucket, key(2), key(1))
	if _, err := read(encrypted.New(inner, both), ada); err != nil { // which wraps its key again
		t.Fatal(err)
	}
	if n, err := both.Rotate(ctx); n != 1 || err != nil {
		t.Errorf("wrapped %d, %v", n, err)
	}
	if _, err := encrypted.Open(ctx, bucket, key(1)); err == nil {
		t.Error("the old key is still the store's")
	}
	log := encrypted.New(inner, keys(t, bucket, key(2)))
	for _, a := range []messages.AgentID{ada, bob} {
		if _, err := read(log, a); err != nil {
			t.Error(err)
		}
	}
}

// revisionOf is that of ada's key; 0: there is none.
func revisionOf(t *testing.T, b encrypted.Bucket) uint64 {
	t.Helper()
	_, revision, err := encrypted.Copy(ctx, b, ada)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// Whoever deletes an agent while its key is put back finds none to erase: it must
// be gone all the same.
func TestPutBackBesideADelete(t *testing.T) { // A108
	from := &encrypted.Memory{}
	log := encrypted.New(memlog.New(), keys(t, from, key(1)))
	if _, err := log.Append(ctx, entry(t, ada, eventlog.Tail{})); err != nil {
		t.Fatal(err)
	}
	copied, revision, err := encrypted.Copy(ctx, from, ada)
	marks, err2 := encrypted.Marks(ctx, from)
	if revision == 0 || err != nil || err2 != nil || copied.Unwraps(key(1)) != nil || copied.Unwraps(key(2)) == nil {
		t.Fatalf("%+v at %d, %v, %v", copied, revision, err, err2)
	}
	lost := errors.New("the connection was lost")
	type said struct {
		mine bool
		err  error
	}
	for what, c := range map[string]struct {
		said   []said
		became encrypted.Put
		there  bool
		err    error
	}{
		"it lives on":               {[]said{{mine: true}, {mine: true}}, encrypted.Restored, true, nil},
		"it was deleted":            {[]said{{}}, encrypted.Unused, false, nil},
		"it is deleted meanwhile":   {[]said{{mine: true}, {}}, encrypted.Unused, false, nil},
		"an error afterwards":       {[]said{{mine: true}, {err: lost}}, encrypted.Unused, false, lost},
		"an error at the beginning": {[]said{{err: lost}}, encrypted.Unused, false, lost},
	} {
		to := &encrypted.Memory{}
		p, err := encrypted.PutBack(ctx, to, marks)
		if err != nil {
			t.Fatal(err)
		}
		within, cancel := context.WithCancel(ctx)
		became, err := p.Put(within, copied, func(ctx context.Context) (bool, error) {
			s := c.said[0]
			if c.said = c.said[1:]; revisionOf(t, to) != 0 {
				cancel() // what was begun is ended
			}
			return s.mine, errors.Join(s.err, ctx.Err())
		})
		cancel()
		if there := revisionOf(t, to) != 0; became != c.became || there != c.there || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, there %v, %v", what, became, there, err)
		}
	}
}

func TestParseKeys(t *testing.T) {
	k := key(7)
	for _, text := range []string{hex.EncodeToString(k[:]), "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=", " BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc\n"} {
		got, err := encrypted.ParseKeys(text)
		if err != nil || len(got) != 1 || got[0] != k {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got, err := encrypted.ParseKeys(hex.EncodeToString(k[:]) + "," + strings.Repeat("01", 32)); err != nil || len(got) != 2 || got[1] != key(1) {
		t.Error(got, err)
	}
	for _, text := range []string{"", "secret-word", strings.Repeat("01", 31), strings.Repeat("01", 33)} {
		if got, err := encrypted.ParseKeys(text); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
