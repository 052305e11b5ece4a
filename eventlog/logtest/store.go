package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

var blobs = map[string]func(*testing.T, Opened){
	// A36
	"a blob of any size comes back as it was": func(t *testing.T, o Opened) {
		a := Agent("ada")
		for _, size := range []int{0, 1, 200 << 10, 224 << 10, 224<<10 + 1, 3 << 20} {
			payload := noise(uint64(size), size)
			b := putBlob(t, o.Store, a, payload)
			if b.SHA256 != messages.DigestOf(payload) || b.Size != int64(size) || (b.Stored != "") != o.Encrypted {
				t.Errorf("%d bytes are stored as %+v", size, b)
			}
			wantBlob(t, o.Store, a, b, payload)
		}
	},
	"a blob is read from any place on": func(t *testing.T, o Opened) {
		a := Agent("ada")
		for _, size := range []int{0, 1, 64 << 10, 224 << 10, 448 << 10, 448<<10 + 1, 3<<20 + 5} {
			payload := noise(uint64(size), size)
			b := putBlob(t, o.Store, a, payload)
			for _, at := range []int{0, 1, 64<<10 - 1, 64 << 10, 224 << 10, 224<<10 + 1, 448 << 10, 2 << 20, size - 1, size} {
				if at >= 0 && at <= size {
					wantBlobFrom(t, o.Store, a, b, payload, at)
				}
			}
		}
	},
	"a blob is kept once, also if it is stored again": func(t *testing.T, o Opened) {
		a, payload := Agent("ada"), noise(1, 700<<10)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := o.PutBlob(context.Background(), a, bytes.NewReader(payload)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		b := putBlob(t, o.Store, a, payload)
		wantBlobs(t, o.Store, a, b)
		wantBlob(t, o.Store, a, b, payload)
	},
	"a reader may begin in the middle of what it reads": func(t *testing.T, o Opened) {
		a, payload := Agent("ada"), noise(1, 300<<10)
		r := bytes.NewReader(payload)
		if _, err := r.Seek(1000, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		b, err := o.PutBlob(context.Background(), a, r)
		if err != nil {
			t.Fatal(err)
		}
		wantBlob(t, o.Store, a, b, payload[1000:])
	},
	"a source that fails stores nothing that can be read": func(t *testing.T, o Opened) {
		a, payload := Agent("ada"), noise(1, 700<<10)
		_, err := o.PutBlob(context.Background(), a, &failing{bytes.NewReader(payload)})
		if !errors.Is(err, iotest.ErrTimeout) {
			t.Errorf("%v, want the source's own error", err)
		}
		wantNoBlob(t, o.Store, a, messages.Blob{SHA256: messages.DigestOf(payload), Size: int64(len(payload))})
		wantBlob(t, o.Store, a, putBlob(t, o.Store, a, payload), payload)
	},
	"no agent sees another's blob": func(t *testing.T, o Opened) {
		agents, payload := Neighbours(2), noise(1, 1000)
		b := putBlob(t, o.Store, agents[0], payload)
		wantNoBlob(t, o.Store, agents[1], b)
		wantBlobs(t, o.Store, agents[1])
		putBlob(t, o.Store, agents[1], payload)
		if err := o.RemoveBlobs(context.Background(), agents[1], eventlog.All); err != nil {
			t.Fatal(err)
		}
		wantNoBlob(t, o.Store, agents[1], b)
		wantBlob(t, o.Store, agents[0], b, payload)
	},
	"a name that no blob has is not found": func(t *testing.T, o Opened) {
		for _, hash := range []messages.Digest{"", ">", "*", "abc", messages.DigestOf(nil)} {
			wantNoBlob(t, o.Store, Agent("ada"), messages.Blob{SHA256: hash})
		}
	},
	"blobs are listed and removed by name or all": func(t *testing.T, o Opened) {
		a, ctx := Agent("ada"), context.Background()
		wantBlobs(t, o.Store, a)
		var all []messages.Blob
		for i := range 4 {
			all = append(all, putBlob(t, o.Store, a, noise(uint64(i), i*300<<10)))
		}
		wantBlobs(t, o.Store, a, all...)
		if err := o.RemoveBlobs(ctx, a, eventlog.All, all[0].Kept(), all[3].Kept(), messages.DigestOf([]byte("none"))); err != nil {
			t.Fatal(err)
		}
		wantBlobs(t, o.Store, a, all[1:3]...)
		wantNoBlob(t, o.Store, a, all[3])
		if err := o.RemoveBlobs(ctx, a, eventlog.All); err != nil {
			t.Fatal(err)
		}
		wantBlobs(t, o.Store, a)
		wantBlob(t, o.Store, a, putBlob(t, o.Store, a, noise(3, 900<<10)), noise(3, 900<<10))
	},
	// A29
	"a damaged blob is reported": func(t *testing.T, o Opened) {
		if o.Tamper == nil {
			t.Skip("this log cannot be tampered with")
		}
		agents, payload := Neighbours(2), noise(1, 700<<10)
		b := putBlob(t, o.Store, agents[0], payload)
		putBlob(t, o.Store, agents[1], payload)
		o.Tamper(t, agents[0], b)
		_, err := readBlob(o.Store, agents[0], b)
		wantCode(t, err, messages.Damaged)
		if err != nil && !strings.Contains(err.Error(), string(b.SHA256)) {
			t.Errorf("%q does not name the blob", err)
		}
		wantBlob(t, o.Store, agents[1], b, payload)
	},
	"a blob of another size than named is damaged": func(t *testing.T, o Opened) {
		a := Agent("ada")
		b := putBlob(t, o.Store, a, noise(1, 1000))
		b.Size++
		_, err := readBlob(o.Store, a, b)
		wantCode(t, err, messages.Damaged)
	},
	"a reader of a blob may leave early": func(t *testing.T, o Opened) {
		a := Agent("ada")
		b := putBlob(t, o.Store, a, noise(1, 3<<20))
		for _, n := range []int{0, 1, 1 << 20} {
			r, err := o.Blob(context.Background(), a, b)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(r, make([]byte, n)); err != nil {
				t.Error(err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	},
	"an ended context ends all of the store's calls": func(t *testing.T, o Opened) {
		a := Agent("ada")
		b := putBlob(t, o.Store, a, noise(1, 10))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for what, err := range map[string]error{
			"put a blob":      last(o.PutBlob(ctx, a, strings.NewReader("new"))),
			"blob":            last(o.Blob(ctx, a, b)),
			"remove blobs":    o.RemoveBlobs(ctx, a, eventlog.All),
			"list blobs":      lastOf(o.ListBlobs(ctx, a)),
			"put a snapshot":  o.PutSnapshot(ctx, a, "state", nil),
			"snapshot":        last(o.Snapshot(ctx, a, "state")),
			"list snapshots":  last(o.ListSnapshots(ctx, a)),
			"purge":           o.Log.Purge(ctx, a, 1),
			"end of a shard":  last(o.Feed.ShardEnd(ctx, 0)),
			"read a shard":    lastOf(o.Feed.ReadShard(ctx, 0, 0)),
			"read on":         lastOf(o.Log.Read(ctx, a, eventlog.Behind(eventlog.Position{Frame: "x", Seq: 1}))),
			"remove snapshot": o.RemoveSnapshots(ctx, a, eventlog.All),
		} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want context.Canceled", what, err)
			}
		}
		wantBlobs(t, o.Store, a, b)
	},
}

var snapshots = map[string]func(*testing.T, Opened){
	"a snapshot comes back as it was, the newest alone": func(t *testing.T, o Opened) {
		a := Agent("ada")
		wantSnapshot(t, o.Store, a, "state", nil)
		for i, size := range []int{10, 200 << 10, 3 << 20, 224<<10 + 1, 0, 900 << 10} {
			want := noise(uint64(i), size)
			putSnapshot(t, o.Store, a, "state", want)
			wantSnapshot(t, o.Store, a, "state", want)
		}
	},
	"snapshots of an agent are kept by name": func(t *testing.T, o Opened) {
		agents, ctx := Neighbours(2), context.Background()
		for i, name := range []string{"state", "ids-1", "ids-2", "pages"} {
			putSnapshot(t, o.Store, agents[0], name, noise(uint64(i), i*200<<10))
		}
		putSnapshot(t, o.Store, agents[1], "state", []byte("bob's"))
		wantSnapshots(t, o.Store, agents[0], "ids-1", "ids-2", "pages", "state")
		wantSnapshots(t, o.Store, agents[1], "state")
		wantSnapshot(t, o.Store, agents[0], "unknown", nil)
		wantSnapshot(t, o.Store, agents[0], "ids-2", noise(2, 400<<10))
		if err := o.RemoveSnapshots(ctx, agents[0], eventlog.All); err != nil {
			t.Fatal(err)
		}
		wantSnapshots(t, o.Store, agents[0])
		wantSnapshot(t, o.Store, agents[1], "state", []byte("bob's"))
	},
	// A108
	"what was stored up to a place is removed": func(t *testing.T, o Opened) {
		agents, ctx := Neighbours(2), context.Background()
		var blobs []messages.Blob
		for i, a := range agents {
			blobs = append(blobs, putBlob(t, o.Store, a, noise(uint64(i), 300<<10)))
			putSnapshot(t, o.Store, a, "state", noise(uint64(i), 200<<10))
		}
		lastBlob, err := o.LastBlob(ctx, agents[0])
		if err != nil {
			t.Fatal(err)
		}
		lastSnapshot, err := o.LastSnapshot(ctx, agents[0])
		if err != nil {
			t.Fatal(err)
		}
		later := putBlob(t, o.Store, agents[0], noise(2, 300<<10))
		putSnapshot(t, o.Store, agents[0], "later", noise(2, 200<<10))
		for range 2 {
			if err := errors.Join(o.RemoveBlobs(ctx, agents[0], lastBlob), o.RemoveSnapshots(ctx, agents[0], lastSnapshot)); err != nil {
				t.Fatal(err)
			}
			wantBlobs(t, o.Store, agents[0], later)
			wantSnapshots(t, o.Store, agents[0], "later")
			wantBlobs(t, o.Store, agents[1], blobs[1])
			wantSnapshots(t, o.Store, agents[1], "state")
		}
		wantBlob(t, o.Store, agents[0], later, noise(2, 300<<10))
		if err := o.RemoveBlobs(ctx, agents[0], 0); err != nil {
			t.Fatal(err)
		}
		wantBlobs(t, o.Store, agents[0], later)
	},
	"what the caller does with its bytes changes no snapshot": func(t *testing.T, o Opened) {
		a, mine := Agent("ada"), []byte("mine")
		putSnapshot(t, o.Store, a, "state", mine)
		clear(mine)
		got, err := o.Snapshot(context.Background(), a, "state")
		if err != nil || string(got) != "mine" {
			t.Fatalf("%q, %v", got, err)
		}
		clear(got)
		wantSnapshot(t, o.Store, a, "state", []byte("mine"))
	},
	"a name that may not stand in a subject is refused": func(t *testing.T, o Opened) {
		ctx := context.Background()
		for _, name := range []string{"", "a.b", "*", ">", "a b"} {
			wantCode(t, o.PutSnapshot(ctx, Agent("ada"), name, nil), messages.BadAddress)
			wantCode(t, last(o.Snapshot(ctx, Agent("ada"), name)), messages.BadAddress)
			wantCode(t, o.RemoveSnapshots(ctx, Agent(name), eventlog.All), messages.BadAddress)
			wantCode(t, o.PutSnapshot(ctx, Agent(name), "state", nil), messages.BadAddress)
			wantCode(t, last(o.PutBlob(ctx, Agent(name), strings.NewReader("x"))), messages.BadAddress)
			wantCode(t, o.RemoveBlobs(ctx, Agent(name), eventlog.All), messages.BadAddress)
			wantCode(t, o.Log.Purge(ctx, Agent(name), 1), messages.BadAddress)
		}
	},
	"of writers at once one snapshot is whole or none": func(t *testing.T, o Opened) {
		a := Agent("ada")
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { putSnapshot(t, o.Store, a, "state", noise(uint64(i), 500<<10)) })
		}
		wg.Go(func() {
			for range 50 {
				got, err := o.Snapshot(context.Background(), a, "state")
				whole := func(i int) bool { return bytes.Equal(got, noise(uint64(i), 500<<10)) }
				if err != nil || got != nil && !slices.ContainsFunc([]int{0, 1, 2, 3}, whole) {
					t.Errorf("%d bytes that were not stored, %v", len(got), err)
				}
			}
		})
		wg.Wait()
	},
}

// noise is n bytes that depend on the seed alone.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}).Read(b) // never fails
	return b
}

// failing is a source that breaks off when it is read the second time.
type failing struct{ *bytes.Reader }

func (f *failing) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 {
		return 0, iotest.ErrTimeout
	}
	return f.Reader.Seek(offset, whence)
}

func putBlob(t testing.TB, log eventlog.Blobs, a messages.AgentID, payload []byte) messages.Blob {
	t.Helper()
	b, err := log.PutBlob(context.Background(), a, bytes.NewReader(payload))
	if err != nil {
		t.Fatalf("put a blob of %s: %v", a, err)
	}
	return b
}

func readBlob(log eventlog.Blobs, a messages.AgentID, b messages.Blob) ([]byte, error) {
	r, err := log.Blob(context.Background(), a, b)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(r)
	return got, errors.Join(err, r.Close())
}

func wantBlob(t testing.TB, log eventlog.Blobs, a messages.AgentID, b messages.Blob, want []byte) {
	t.Helper()
	got, err := readBlob(log, a, b)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("blob of %s: %d bytes with hash %s, %v; want %d with %s", a, len(got), messages.DigestOf(got), err, len(want), messages.DigestOf(want))
	}
}

// wantBlobFrom skips to a place, half of the way at once and half after a first
// byte was read.
func wantBlobFrom(t *testing.T, log eventlog.Blobs, a messages.AgentID, b messages.Blob, payload []byte, at int) {
	t.Helper()
	for _, first := range []int{at, at / 2} {
		r, err := log.Blob(context.Background(), a, b)
		if err != nil {
			t.Fatal(err)
		}
		err = eventlog.Skip(r, int64(first))
		if rest := at - first; err == nil && rest > 0 {
			if _, err = io.ReadFull(r, make([]byte, 1)); err == nil {
				err = eventlog.Skip(r, int64(rest-1))
			}
		}
		if err != nil {
			t.Fatalf("skip to byte %d of %d: %v", at, len(payload), err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, payload[at:]) {
			t.Errorf("from byte %d of %d: %d bytes, %v", at, len(payload), len(got), err)
		}
		_ = r.Close()
	}
}

func wantNoBlob(t testing.TB, log eventlog.Blobs, a messages.AgentID, b messages.Blob) {
	t.Helper()
	_, err := readBlob(log, a, b)
	wantCode(t, err, messages.NotFound)
}

func wantBlobs(t testing.TB, log eventlog.Blobs, a messages.AgentID, want ...messages.Blob) {
	t.Helper()
	var got []messages.Blob
	for b, err := range log.ListBlobs(context.Background(), a) {
		if err != nil {
			t.Fatalf("list the blobs of %s: %v", a, err)
		}
		got = append(got, b)
	}
	byHash := func(x, y messages.Blob) int { return strings.Compare(string(x.Kept()), string(y.Kept())) }
	same := func(x, y messages.Blob) bool { return x == y || y.Stored != "" && x.SHA256 == y.Stored }
	slices.SortFunc(got, byHash)
	if want = slices.SortedFunc(slices.Values(want), byHash); !slices.EqualFunc(got, want, same) {
		t.Fatalf("%s has the blobs %v, want %v", a, got, want)
	}
}

func putSnapshot(t testing.TB, log eventlog.Snapshots, a messages.AgentID, name string, snapshot []byte) {
	t.Helper()
	if err := log.PutSnapshot(context.Background(), a, name, snapshot); err != nil {
		t.Errorf("put snapshot %s of %s: %v", name, a, err)
	}
}

func wantSnapshot(t testing.TB, log eventlog.Snapshots, a messages.AgentID, name string, want []byte) {
	t.Helper()
	got, err := log.Snapshot(context.Background(), a, name)
	if err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
		t.Fatalf("snapshot %s of %s: %d bytes, %v; want %d others", name, a, len(got), err, len(want))
	}
}

func wantSnapshots(t testing.TB, log eventlog.Snapshots, a messages.AgentID, want ...string) {
	t.Helper()
	got, err := log.ListSnapshots(context.Background(), a)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%s has the snapshots %v, %v; want %v", a, got, err, want)
	}
}

func wantCode(t testing.TB, err error, code messages.Code) {
	t.Helper()
	var e *messages.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%v, want %s", err, code)
	}
}

// last returns the error of a call that has a result.
func last[T any](_ T, err error) error { return err }

// lastOf returns the error that a sequence ends with.
func lastOf[T any](all iter.Seq2[T, error]) (err error) {
	for _, err = range all {
	}
	return err
}
