package logtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

var sharding = map[string]func(*testing.T, Opened){
	"each agent's frames are in one shard, in order": func(t *testing.T, o Opened) {
		ends := shardEnds(t, o)
		want := make(map[messages.AgentID][]eventlog.Position)
		for range 3 {
			for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				a := Agent(key)
				want[a] = append(want[a], appended(t, o.Log, Entry(t, a, behindLast(want[a]), large(5), large(6))))
			}
		}
		in := make(map[messages.AgentID]int)
		for shard := range o.Feed.Shards() {
			s := readShard(t, o.Feed, shard, 0)
			seq := uint64(0)
			for _, m := range s.past(t) {
				tails := want[m.Agent]
				if len(tails) == 0 || !same(t, m, tails[0]) || m.Seq <= seq {
					t.Fatalf("shard %d: got %+v after %d, want %+v", shard, m.Head, seq, tails)
				}
				if was, ok := in[m.Agent]; ok && was != shard {
					t.Errorf("%s is in the shards %d and %d", m.Agent, was, shard)
				}
				in[m.Agent], seq, want[m.Agent] = shard, m.Seq, tails[1:]
			}
			if end, err := o.Feed.ShardEnd(context.Background(), shard); err != nil || end != max(seq, ends[shard]) {
				t.Errorf("shard %d ends at %d, %v; want %d", shard, end, err, max(seq, ends[shard]))
			}
			s.end(t)
		}
		for a, left := range want {
			if len(left) > 0 {
				t.Errorf("%s: %d frames were not read", a, len(left))
			}
		}
	},
	"a shard is read on from any place, and what comes": func(t *testing.T, o Opened) {
		agents := Neighbours(2)
		tails := grow(t, o.Log, agents[0], eventlog.Position{}, 5)
		shard := shardOf(t, o.Feed, agents[0])
		readers := make([]*sharded, len(tails))
		for n, tail := range tails {
			readers[n] = readShard(t, o.Feed, shard, tail.Seq)
			if past := readers[n].past(t); len(past) != len(tails)-n-1 {
				t.Errorf("behind frame %d: %d messages, want %d", n+1, len(past), len(tails)-n-1)
			}
		}
		tails = append(tails, grow(t, o.Log, agents[0], tails[4], 3)...)
		other := grow(t, o.Log, agents[1], eventlog.Position{}, 1)[0]
		for _, r := range readers {
			for _, tail := range append(tails[5:8:8], other) {
				if m := r.message(t); !same(t, m, tail) {
					t.Errorf("got %+v, want %+v", m.Head, tail)
				}
			}
			r.end(t)
		}
	},
	"appends while a shard is read are in it once": func(t *testing.T, o Opened) {
		agents := Neighbours(4)
		for _, a := range agents {
			grow(t, o.Log, a, eventlog.Position{}, 20)
		}
		s := readShard(t, o.Feed, shardOf(t, o.Feed, agents[0]), 0)
		for _, a := range agents {
			go func() {
				tail, err := o.Log.Head(context.Background(), a)
				for range 30 {
					if err == nil {
						tail, err = o.Log.Append(context.Background(), Entry(t, a, tail))
					}
				}
				if err != nil {
					t.Error(err)
				}
			}()
		}
		told := make(map[messages.AgentID]messages.EventNumber)
		for range len(agents) * 50 {
			m := s.message(t)
			if m.First != told[m.Agent]+1 {
				t.Fatalf("event %d of %s after %d", m.First, m.Agent, told[m.Agent])
			}
			told[m.Agent] = m.Last
		}
		s.end(t)
	},
	"a place beyond the end of a shard is none": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tail := grow(t, o.Log, a, eventlog.Position{}, 1)[0]
		for _, after := range []uint64{tail.Seq + 1, 1 << 40} {
			if err := lastOf(o.Feed.ReadShard(context.Background(), shardOf(t, o.Feed, a), after)); !errors.Is(err, eventlog.ErrElsewhere) {
				t.Errorf("behind %d: %v, want ErrElsewhere", after, err)
			}
		}
		for _, shard := range []int{-1, o.Feed.Shards()} {
			if err := lastOf(o.Feed.ReadShard(context.Background(), shard, 0)); err == nil {
				t.Errorf("shard %d can be read", shard)
			}
		}
	},
	"a shard reports a foreign message by its head": func(t *testing.T, o Opened) {
		needInject(t, o)
		a := Agent("ada")
		tail := grow(t, o.Log, a, eventlog.Position{}, 1)[0]
		s := readShard(t, o.Feed, shardOf(t, o.Feed, a), tail.Seq)
		s.past(t)
		o.Inject(t, eventlog.Entry{Agent: a, Bytes: []byte("who am I")}, true)
		if m := s.message(t); !m.Foreign || m.Agent != a || m.Frame != nil {
			t.Errorf("%+v", m)
		}
		s.end(t)
	},
	"each pause of a shard is reported": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tail := grow(t, o.Log, a, eventlog.Position{}, 1)[0]
		s := readShard(t, o.Feed, shardOf(t, o.Feed, a), tail.Seq)
		s.past(t)
		for range 3 {
			tail = grow(t, o.Log, a, tail, 1)[0]
			if past := s.past(t); len(past) != 1 || !same(t, past[0], tail) {
				t.Errorf("%d messages before the pause, want one", len(past))
			}
		}
		s.end(t)
	},
	// A29
	"a damaged frame in a shard is reported, and its neighbours read": func(t *testing.T, o Opened) {
		needInject(t, o)
		agents := Neighbours(2)
		tail := grow(t, o.Log, agents[0], eventlog.Position{}, 1)[0]
		spoilt := Entry(t, agents[0], tail)
		spoilt.Bytes[len(spoilt.Bytes)/2] ^= 1
		o.Inject(t, spoilt, false)
		other := grow(t, o.Log, agents[1], eventlog.Position{}, 1)[0]
		s := readShard(t, o.Feed, shardOf(t, o.Feed, agents[0]), tail.Seq)
		_, err := s.message(t).Frame()
		var damaged *eventlog.DamageError
		if !errors.As(err, &damaged) || damaged.Agent != agents[0] || damaged.Event != 2 || damaged.Seq <= tail.Seq {
			t.Errorf("%v, want damage at event 2", err)
		}
		if m := s.message(t); !same(t, m, other) {
			t.Errorf("got %+v, want %+v", m.Head, other)
		}
		s.end(t)
	},
	"a partition is read from any place, up to its end": func(t *testing.T, o Opened) {
		agents := Neighbours(2)
		tails := grow(t, o.Log, agents[0], eventlog.Position{}, 5)
		elsewhere := Agent("ada")
		for i := 0; elsewhere.Partition() == agents[0].Partition() || elsewhere.Partition()/4 != agents[0].Partition()/4; i++ { // in the same stream, where partitions share some
			elsewhere = Agent(fmt.Sprint("ada", i))
		}
		far := grow(t, o.Log, elsewhere, eventlog.Position{}, 2)
		other := grow(t, o.Log, agents[1], eventlog.Position{}, 1)[0]
		for n, after := range append(tails, other) {
			want := append(tails[min(n+1, 5):5:5], other)[:max(0, 5-n)]
			for m, err := range o.Feed.ReadPartition(t.Context(), agents[0].Partition(), after.Seq) {
				if err != nil || len(want) == 0 || !same(t, m, want[0]) {
					t.Fatalf("behind %d: %+v, %v; want %+v", after.Seq, m.Head, err, want)
				}
				want = want[1:]
			}
			if len(want) > 0 {
				t.Errorf("behind %d are not read: %+v", after.Seq, want)
			}
		}
		if err := lastOf(o.Feed.ReadPartition(t.Context(), agents[0].Partition(), max(far[1].Seq, other.Seq)+1)); !errors.Is(err, eventlog.ErrElsewhere) {
			t.Errorf("behind its end: %v, want ErrElsewhere", err)
		}
	},
	"what was purged is not in its shard": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tails := grow(t, o.Log, a, eventlog.Position{}, 6)
		purge(t, o.Log, a, tails[4].Seq)
		s := readShard(t, o.Feed, shardOf(t, o.Feed, a), 0)
		if past := s.past(t); len(past) != 2 || !same(t, past[0], tails[4]) || !same(t, past[1], tails[5]) {
			t.Errorf("%d messages, want the last two", len(past))
		}
		s.end(t)
	},
}

// same reports whether the message is the frame that tail is behind.
func same(t *testing.T, m eventlog.Stored, tail eventlog.Position) bool {
	t.Helper()
	if m.Seq != tail.Seq || m.Last != tail.Last || m.Epoch != tail.Epoch || m.Foreign {
		return false
	}
	f, err := m.Frame()
	return err == nil && f.ID == tail.Frame && f.First == m.First
}

// shardOf finds the shard that the newest frame of a is in.
func shardOf(t *testing.T, log eventlog.Feed, a messages.AgentID) int {
	t.Helper()
	for shard := range log.Shards() {
		s := readShard(t, log, shard, 0)
		past := s.past(t)
		s.end(t)
		for _, m := range past {
			if m.Agent == a {
				return shard
			}
		}
	}
	t.Fatalf("%s is in no shard", a)
	return 0
}

// sharded is a reader of a shard in a goroutine of its own.
type sharded struct {
	messages chan eventlog.Stored
	err      chan error
	cancel   context.CancelFunc
}

func readShard(t *testing.T, log eventlog.Feed, shard int, after uint64) *sharded {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := &sharded{messages: make(chan eventlog.Stored), err: make(chan error, 1), cancel: cancel}
	go func() {
		defer close(s.messages)
		for m, err := range log.ReadShard(ctx, shard, after) {
			if err != nil {
				s.err <- err
				continue
			}
			select {
			case s.messages <- m:
			case <-ctx.Done():
			}
		}
	}()
	return s
}

func (s *sharded) next(t *testing.T) eventlog.Stored {
	t.Helper()
	m, ok := <-s.messages
	if !ok {
		t.Fatalf("the reader ended: %v", <-s.err)
	}
	return m
}

// past returns what comes before the first pause.
func (s *sharded) past(t *testing.T) (all []eventlog.Stored) {
	t.Helper()
	for m := s.next(t); m.Agent != (messages.AgentID{}); m = s.next(t) {
		all = append(all, m)
	}
	return all
}

// message returns the next message, whatever pauses come before it.
func (s *sharded) message(t *testing.T) eventlog.Stored {
	t.Helper()
	for {
		if m := s.next(t); m.Agent != (messages.AgentID{}) {
			return m
		}
	}
}

// end cancels the reader, which must end with the context's error.
func (s *sharded) end(t *testing.T) {
	t.Helper()
	s.cancel()
	for range s.messages {
	}
	if err := <-s.err; !errors.Is(err, context.Canceled) {
		t.Fatalf("the reader ended with %v, want context.Canceled", err)
	}
}

// shardEnds are where the shards of a log that holds nothing end: at 0, but where
// something was before.
func shardEnds(t *testing.T, o Opened) (ends []uint64) {
	t.Helper()
	for shard := range o.Feed.Shards() {
		end, err := o.Feed.ShardEnd(context.Background(), shard)
		if err != nil || end != 0 && !o.Emptied {
			t.Errorf("shard %d, which is empty, ends at %d, %v", shard, end, err)
		}
		ends = append(ends, end)
	}
	return ends
}
