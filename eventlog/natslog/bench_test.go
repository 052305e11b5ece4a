package natslog_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// The benchmarks store about 1 KiB at a time from 64 goroutines over two
// connections in the process, each for an agent of its own:
//
//	go test -run ^$ -bench . -benchmem ./eventlog/natslog
const writers = 64

var payload = strings.Repeat("x", 880)

func parallel(b *testing.B, work func(worker int, next func() bool) error) {
	b.ReportAllocs()
	b.SetBytes(1024)
	var left, workers atomic.Int64
	left.Store(int64(b.N))
	b.SetParallelism(writers / max(1, 4))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		if err := work(int(workers.Add(1)), pb.Next); err != nil {
			b.Error(err)
		}
	})
}

func BenchmarkAppend(b *testing.B) { benchmarkAppend(b, false) }

// BenchmarkAppendFollowed has a follower on each partition, as a node does.
func BenchmarkAppendFollowed(b *testing.B) { benchmarkAppend(b, true) }

func benchmarkAppend(b *testing.B, followed bool) {
	l, _ := open(b, 2)
	if followed {
		followAll(b, l)
	}
	parallel(b, func(worker int, next func() bool) error {
		a := messages.AgentID{Tenant: "default", Kind: "bench", Key: fmt.Sprint(worker)}
		var tail eventlog.Position
		for next() {
			e, err := benchEntry(a, tail)
			if err != nil {
				return err
			}
			if tail, err = l.Append(context.Background(), e); err != nil {
				return err
			}
		}
		return nil
	})
}

func followAll(b *testing.B, l eventlog.Feed) {
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	var ready sync.WaitGroup
	ready.Add(messages.Partitions)
	for p := range messages.Partitions {
		go func() {
			for h, err := range l.Follow(ctx, messages.Partition(p)) {
				if err == nil && h.Agent == (messages.AgentID{}) {
					ready.Done()
				}
			}
		}()
	}
	ready.Wait()
}

func benchEntry(a messages.AgentID, tail eventlog.Position) (eventlog.Entry, error) {
	f := &messages.Frame{
		ID: messages.FrameID(ulid.Make().String()), Epoch: 1, First: tail.Last + 1, Prev: tail.Frame, PrevDigest: tail.Digest, Time: time.Now(),
		Events: []messages.Event{messages.CommandNoop{Command: "x", Reason: payload}},
	}
	bytes, err := messages.EncodeFrame(a, f)
	return eventlog.Entry{Agent: a, Expect: tail, Frame: f, Bytes: bytes, Summary: eventlog.Summary{Phase: messages.PhaseRunning, Turn: "t1", Open: true}}, err
}

// BenchmarkEncode is the part of BenchmarkAppend that is not the log's.
func BenchmarkEncode(b *testing.B) {
	parallel(b, func(worker int, next func() bool) error {
		a := messages.AgentID{Tenant: "default", Kind: "bench", Key: fmt.Sprint(worker)}
		for next() {
			if _, err := benchEntry(a, eventlog.Position{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// BenchmarkRawPublish measures JetStream without us: the same bytes on
// the same streams, no headers and no fence.
func BenchmarkRawPublish(b *testing.B) { benchmarkRaw(b, false) }

// BenchmarkRawPublishFenced adds the expected sequence.
func BenchmarkRawPublishFenced(b *testing.B) { benchmarkRaw(b, true) }

func benchmarkRaw(b *testing.B, fenced bool) {
	_, c := open(b, 2)
	body := []byte(strings.Repeat("x", 1024))
	parallel(b, func(worker int, next func() bool) error {
		js, err := jetstream.New(c.Conns[worker%len(c.Conns)])
		if err != nil {
			return err
		}
		a := messages.AgentID{Tenant: "default", Kind: "bench", Key: fmt.Sprint(worker)}
		last := uint64(0)
		for next() {
			var opts []jetstream.PublishOpt
			if fenced {
				opts = append(opts, jetstream.WithExpectLastSequencePerSubject(last))
			}
			ack, err := js.Publish(context.Background(), c.Subjects.Log(a), body, opts...)
			if err != nil {
				return err
			}
			last = ack.Sequence
		}
		return nil
	})
}

func BenchmarkRead(b *testing.B) {
	for _, frames := range []int{1, 10, 100, 1000, 10000} {
		b.Run(fmt.Sprintf("frames=%d", frames), func(b *testing.B) {
			l, _ := open(b, 1)
			a := messages.AgentID{Tenant: "default", Kind: "bench", Key: "read"}
			var tail eventlog.Position
			for range frames {
				e, err := benchEntry(a, tail)
				if err != nil {
					b.Fatal(err)
				}
				if tail, err = l.Append(context.Background(), e); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, err := range l.Read(context.Background(), a, eventlog.Range{}) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != frames {
					b.Fatalf("read %d frames of %d", n, frames)
				}
			}
		})
	}
}

// The store beside the log, on a server that syncs as `reprise serve` does and
// on one that does not.
func BenchmarkStore(b *testing.B) {
	for _, sync := range []embedded.Sync{embedded.SyncAlways, embedded.SyncRelaxed} {
		b.Run(fmt.Sprintf("sync=%v", sync), func(b *testing.B) { benchmarkStore(b, sync) })
	}
}

func benchmarkStore(b *testing.B, sync embedded.Sync) {
	l := openSynced(b, sync)
	ctx, a := context.Background(), messages.AgentID{Tenant: "default", Kind: "bench", Key: "store"}
	snapshot, payload := make([]byte, 200<<10), make([]byte, 10<<20)
	fresh := func(p []byte) { _, _ = rand.NewChaCha8([32]byte{byte(time.Now().UnixNano())}).Read(p) }
	fresh(snapshot)
	b.Run("PutSnapshot=200KB", func(b *testing.B) {
		for b.Loop() {
			if err := l.PutSnapshot(ctx, a, "state", snapshot); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Snapshot=200KB", func(b *testing.B) {
		for b.Loop() {
			if got, err := l.Snapshot(ctx, a, "state"); err != nil || len(got) != len(snapshot) {
				b.Fatal(len(got), err)
			}
		}
	})
	var blob messages.Blob
	n := uint64(0)
	b.Run("PutBlob=10MiB", func(b *testing.B) {
		b.SetBytes(int64(len(payload)))
		for b.Loop() {
			n++
			binary.LittleEndian.PutUint64(payload, n) // another hash
			var err error
			if blob, err = l.PutBlob(ctx, a, bytes.NewReader(payload)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Blob=10MiB", func(b *testing.B) {
		b.SetBytes(int64(len(payload)))
		for b.Loop() {
			r, err := l.Blob(ctx, a, blob)
			if err != nil {
				b.Fatal(err)
			}
			if got, err := io.Copy(io.Discard, r); err != nil || got != blob.Size {
				b.Fatal(got, err)
			}
			_ = r.Close()
		}
	})
}

// openSynced opens a log on a server of its own.
func openSynced(b *testing.B, sync embedded.Sync) *natslog.Log {
	b.Helper()
	srv, err := embedded.Start(embedded.Config{Dir: b.TempDir(), DontListen: true, Sync: sync, Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = srv.Shutdown() })
	nc, err := srv.Connect()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	l, err := natslog.Open(context.Background(), natslog.Config{Conns: []*nats.Conn{nc}, Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// BenchmarkReadFrom reads on in a stream of 100,000 messages of 1,000 other
// agents; BenchmarkReadShard reads all of them.
func BenchmarkReadFrom(b *testing.B) {
	l, a, tails := crowd(b)
	for _, behind := range []int{0, 16, 64, 500} {
		b.Run(fmt.Sprintf("behind=%d", behind), func(b *testing.B) {
			for b.Loop() {
				n := 0
				for _, err := range l.Read(context.Background(), a, eventlog.Behind(tails[len(tails)-1-behind])) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != behind {
					b.Fatalf("%d frames of %d", n, behind)
				}
			}
		})
	}
	b.Run("Read of all", func(b *testing.B) {
		for b.Loop() {
			for _, err := range l.Read(context.Background(), a, eventlog.Range{}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("Read of the newest", func(b *testing.B) {
		for b.Loop() {
			for _, err := range l.Read(context.Background(), a, eventlog.From(tails[len(tails)-1].Last)) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	shard := int(a.Partition()) / (messages.Partitions / l.Shards())
	for _, decode := range []bool{false, true} {
		b.Run(fmt.Sprintf("ReadShard/decode=%v", decode), func(b *testing.B) {
			total := 0
			for b.Loop() {
				for m, err := range l.ReadShard(context.Background(), shard, 0) {
					if err == nil && m.Agent == (messages.AgentID{}) {
						break
					}
					if total++; err == nil && decode {
						_, err = m.Frame()
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "frames/s")
		})
	}
}

// crowd returns an agent whose 1,000 frames lie among 100,000 of its neighbours.
func crowd(b *testing.B) (l *natslog.Log, a messages.AgentID, tails []eventlog.Position) {
	l = openSynced(b, embedded.SyncRelaxed)
	neighbours := logtest.Neighbours(1001)
	a = neighbours[0]
	grow := func(tail eventlog.Position, a messages.AgentID) eventlog.Position {
		e, err := benchEntry(a, tail)
		if err == nil {
			tail, err = l.Append(context.Background(), e)
		}
		if err != nil {
			b.Fatal(err)
		}
		return tail
	}
	others := make([]eventlog.Position, len(neighbours))
	for range 100 {
		for i, other := range neighbours[1:] {
			others[i] = grow(others[i], other)
			if i%100 == 0 {
				tails = append(tails, grow(others[1000], a))
				others[1000] = tails[len(tails)-1]
			}
		}
	}
	return l, a, tails
}
