package natslog_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/eventlog"
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
		var tail eventlog.Tail
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

func followAll(b *testing.B, l eventlog.Follower) {
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

func benchEntry(a messages.AgentID, tail eventlog.Tail) (eventlog.Entry, error) {
	f := &messages.Frame{
		ID: messages.FrameID(ulid.Make().String()), Epoch: 1, First: tail.Last + 1, Prev: tail.Frame, PrevDigest: tail.Digest, Time: time.Now(),
		Events: []messages.Event{messages.CommandNoop{Command: "x", Reason: payload}},
	}
	bytes, err := messages.EncodeFrame(a, f)
	return eventlog.Entry{Agent: a, Expect: tail, Frame: f, Bytes: bytes, Summary: eventlog.Summary{Phase: eventlog.Running, Turn: "t1", Open: true}}, err
}

// BenchmarkEncode is the part of BenchmarkAppend that is not the log's.
func BenchmarkEncode(b *testing.B) {
	parallel(b, func(worker int, next func() bool) error {
		a := messages.AgentID{Tenant: "default", Kind: "bench", Key: fmt.Sprint(worker)}
		for next() {
			if _, err := benchEntry(a, eventlog.Tail{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// BenchmarkRawPublish is what JetStream gives without us: the same bytes on
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
			var tail eventlog.Tail
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
				for _, err := range l.Read(context.Background(), a, 1) {
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
