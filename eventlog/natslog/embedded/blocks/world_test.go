package blocks_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
)

// message is what was stored, or what Verify reports or the server returns of it.
type message struct{ subject, header, body string }

// world is a server on a folder, and a generator of messages.
type world struct {
	t    testing.TB
	dir  string
	end  func()
	nc   *nats.Conn
	js   jetstream.JetStream
	rand *rand.Rand
}

func newWorld(t testing.TB, dir string) *world {
	t.Helper()
	return startWorld(t, embeddedtest.PlainConfig{Dir: dir, SyncAlways: true})
}

func startWorld(t testing.TB, c embeddedtest.PlainConfig) *world {
	t.Helper()
	w := &world{t: t, dir: c.Dir, rand: rand.New(rand.NewPCG(1, 2))}
	w.nc, w.end = embeddedtest.Plain(t, c)
	var err error
	w.js, err = jetstream.New(w.nc)
	w.ok(err)
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *world) stop() { w.end() }

// kill returns a copy of the folder as it is: what a kill would leave behind.
func (w *world) kill() string {
	dir := w.t.TempDir()
	copyTree(w.t, w.dir, dir)
	return dir
}

// copyTree copies what a server stores, but for what it is removing after a purge.
func copyTree(t testing.TB, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		switch name, _ := filepath.Rel(from, path); {
		case e != nil && e.Name() == "__msgs__":
			return fs.SkipDir
		case err != nil:
			return err
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		default:
			data, err := os.ReadFile(path)
			if strings.HasSuffix(name, ".new") && errors.Is(err, fs.ErrNotExist) {
				return nil // it has become the block beside it, which was copied before
			}
			return errors.Join(err, os.WriteFile(filepath.Join(to, name), data, 0o600))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// stream makes a stream of small blocks: the server derives their size from the limit,
// and keeps it when the limit is taken back.
func (w *world) stream(c jetstream.StreamConfig) jetstream.Stream {
	w.t.Helper()
	c.Subjects, c.AllowDirect, c.MaxBytes = []string{c.Name + ".>"}, true, 100_000
	_, err := w.js.CreateStream(w.ctx(), c)
	w.ok(err)
	c.MaxBytes = -1
	s, err := w.js.UpdateStream(w.ctx(), c)
	w.ok(err)
	return s
}

// fill publishes messages of many sizes, some with headers.
func (w *world) fill(stream string, n int) {
	w.t.Helper()
	for range n {
		_, err := w.js.PublishMsgAsync(w.message(stream))
		w.ok(err)
	}
	select {
	case <-w.js.PublishAsyncComplete():
	case <-w.ctx().Done():
		w.t.Fatal("not everything was stored within a minute")
	}
}

func (w *world) message(stream string) *nats.Msg {
	m := nats.NewMsg(fmt.Sprintf("%s.%d.%s", stream, w.rand.IntN(40), "abcdefghij"[:1+w.rand.IntN(10)]))
	payload := make([]byte, [...]int{0, 1, 30, 300, 3000, w.rand.IntN(5000)}[w.rand.IntN(6)])
	for i := range payload {
		payload[i] = byte(w.rand.Uint32())
	}
	switch w.rand.IntN(3) {
	case 0:
		m.Header.Set("Color", "blue")
		m.Data = payload
	case 1:
		m.Header.Set("Color", "green")
		m.Header.Set("Long", fmt.Sprint(w.rand.Uint64(), w.rand.Uint64()))
		m.Data = append([]byte("\r\n\r\n"), payload...)
	default:
		m.Data = binary.BigEndian.AppendUint32(nil, sum(m.Subject, payload))
		m.Data = append(m.Data, payload...)
	}
	return m
}

func sum(subject string, payload []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE([]byte(subject)), crc32.IEEETable, payload)
}

// check holds messages without a header to the sum in their bodies.
func check(r blocks.Record) error {
	if r.Header != nil || len(r.Body) >= 4 && binary.BigEndian.Uint32(r.Body) == sum(r.Subject, r.Body[4:]) {
		return nil
	}
	return fmt.Errorf("the sum in the body does not match")
}

// served returns what the server returns of a stream, and its last sequence.
func (w *world) served(name string) (map[uint64]message, uint64) {
	w.t.Helper()
	s, err := w.js.Stream(w.ctx(), name)
	w.ok(err)
	state := s.CachedInfo().State
	out := make(map[uint64]message)
	if state.Msgs == 0 {
		return out, state.LastSeq
	}
	c, err := s.OrderedConsumer(w.ctx(), jetstream.OrderedConsumerConfig{})
	w.ok(err)
	for uint64(len(out)) < state.Msgs {
		m, err := c.Next(jetstream.FetchMaxWait(30 * time.Second))
		w.ok(err)
		meta, err := m.Metadata()
		w.ok(err)
		out[meta.Sequence.Stream] = message{m.Subject(), fields(m.Headers()), string(m.Data())}
	}
	return out, state.LastSeq
}

// fields writes a header so that two can be compared.
func fields(h nats.Header) string {
	var b bytes.Buffer
	for _, k := range []string{"Color", "Long"} {
		if v := h.Get(k); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", k, v)
		}
	}
	return b.String()
}

// found is what Verify reports of a stream.
type found struct {
	blocks.Report
	messages map[uint64]message
	records  []blocks.Record // without bodies
}

// verify verifies one stream of a folder.
func verify(t testing.TB, dir, name string, o blocks.Options) found {
	t.Helper()
	f := found{messages: make(map[uint64]message)}
	o.Record = func(r blocks.Record) error {
		if r.Kind == blocks.Message {
			if _, twice := f.messages[r.Seq]; twice {
				t.Errorf("message %d is given twice", r.Seq)
			}
			h, err := nats.DecodeHeadersMsg(r.Header)
			if r.Header != nil && err != nil {
				t.Errorf("header of message %d: %v", r.Seq, err)
			}
			f.messages[r.Seq] = message{r.Subject, fields(h), string(r.Body)}
		}
		f.records = append(f.records, r)
		return nil
	}
	var err error
	if f.Report, err = blocks.Verify(t.Context(), stream(t, dir, name), o); err != nil {
		t.Fatal(err)
	}
	return f
}

func stream(t testing.TB, dir, name string) blocks.Stream {
	t.Helper()
	all, err := blocks.Streams(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no stream %s in %v", name, all)
	return blocks.Stream{}
}

// alive returns the messages without those that were deleted.
func (f found) alive() map[uint64]message {
	out := maps.Clone(f.messages)
	maps.DeleteFunc(out, func(seq uint64, _ message) bool {
		return slices.ContainsFunc(f.Deleted, func(s blocks.Span) bool { return s.First <= seq && seq <= s.Last })
	})
	return out
}
