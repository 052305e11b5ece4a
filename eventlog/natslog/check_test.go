package natslog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// store is a log on a server of its own, whose folder can be damaged. The server does not
// examine the folder before it opens it.
type store struct {
	t    *testing.T
	dir  string
	stop func()
	nc   *nats.Conn
	log  *natslog.Log
	// doubted are the shards that an append was in doubt about.
	doubted chan int
}

func newStore(t *testing.T) *store { return openStore(t, t.TempDir()) }

func openStore(t *testing.T, dir string) *store {
	t.Helper()
	nc, stop := embeddedtest.Plain(t, embeddedtest.PlainConfig{Dir: dir})
	s := &store{t: t, dir: dir, stop: stop, nc: nc, doubted: make(chan int, 100)}
	var err error
	s.log, err = natslog.Open(t.Context(), natslog.Config{Conns: []*nats.Conn{nc}, Logger: quiet, Doubt: func(shard int) { s.doubted <- shard }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// crashed returns a store on a copy of the folder, on which harm was done first.
func (s *store) crashed(harm func(dir string)) *store {
	s.t.Helper()
	dir := embeddedtest.Crash(s.t, s.dir)
	harm(dir)
	return openStore(s.t, dir)
}

// stopped stops the server in order and returns a store on the folder, on which harm
// was done between.
func (s *store) stopped(harm func(dir string)) *store {
	s.t.Helper()
	s.stop()
	harm(s.dir)
	return openStore(s.t, s.dir)
}

// filled appends n frames to each of two agents of one partition, in turn, and marks them.
func (s *store) filled(n int) (agents []messages.AgentID, tails []eventlog.Position) {
	s.t.Helper()
	agents = logtest.Neighbours(2)
	tails = make([]eventlog.Position, len(agents))
	for range n {
		for i, a := range agents {
			var err error
			if tails[i], err = s.log.Append(s.t.Context(), logtest.Entry(s.t, a, tails[i])); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	s.mark(agents[0])
	return agents, tails
}

func (s *store) mark(a messages.AgentID) {
	s.t.Helper()
	s.check(a) // which begins the record
	if err := s.log.Mark(s.t.Context(), a.Partition(), s.log.Position(a.Partition())); err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) check(a messages.AgentID) *natslog.LossError {
	s.t.Helper()
	loss := new(natslog.LossError)
	err := s.log.Check(s.t.Context(), s.log.ShardOf(a), true)
	if err != nil && !errors.As(err, &loss) {
		s.t.Fatal(err)
	}
	if err == nil {
		return nil
	}
	return loss
}

func streamOf(a messages.AgentID) string {
	return natslog.NamesOf(messages.Subjects{}).Log(a.Partition())
}

// TestLossIsFound damages a block of the log in every way that makes the server drop
// messages without a word.
func TestLossIsFound(t *testing.T) { // A29
	s := newStore(t)
	agents, tails := s.filled(10)
	a, stream := agents[0], streamOf(agents[0])
	if loss := s.check(a); loss != nil {
		t.Fatalf("of a sound stream: %v", loss)
	}
	frame := func(n int) string { // a text of the n-th frame of the first agent
		var id string
		for r, err := range s.log.Read(t.Context(), a, eventlog.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			if n--; n == 0 {
				id = string(r.Frame.ID)
			}
		}
		return id
	}
	third := frame(3)
	spoil := func(change func(block []byte, at int) []byte) func(string) {
		return func(dir string) { embeddedtest.Spoil(t, dir, stream, third, change) }
	}
	noIndex := func(dir string) {
		if err := os.Remove(filepath.Join(dir, "jetstream", "$G", "streams", stream, "msgs", "index.db")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	flip := spoil(func(block []byte, at int) []byte { block[at] ^= 1; return block })
	for name, harm := range map[string]func(string){
		"flip":               flip,
		"flip without index": func(dir string) { flip(dir); noIndex(dir) },
		"cut":                spoil(func(block []byte, at int) []byte { return block[:at] }),
		"zeroed":             spoil(func(block []byte, at int) []byte { clear(block[at:min(at+4096, len(block))]); return block }),
		"removed":            spoil(func([]byte, int) []byte { return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			loss := s.crashed(harm).check(a)
			if loss == nil || loss.Known != tails[1].Seq || loss.Stream != stream || !loss.Settled || loss.Found >= loss.Known && loss.Missing == 0 {
				t.Fatalf("loss %+v, want one of %s that was known to reach %d", loss, stream, tails[1].Seq)
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		if loss := s.crashed(noIndex).check(a); loss != nil {
			t.Fatalf("of a sound stream that was killed: %v", loss)
		}
	})
	t.Run("made again", func(t *testing.T) {
		other := s.crashed(func(dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "jetstream", "$G", "streams", stream)); err != nil {
				t.Fatal(err)
			}
		})
		if loss := other.check(a); loss == nil || !strings.Contains(loss.Error(), "made again") || loss.Found != 0 {
			t.Fatalf("loss %+v", loss)
		}
	})
}

// TestDamagedNewestFrame flips a bit of an agent's newest frame while the server is
// stopped. The server then answers as if the agent had never been.
func TestDamagedNewestFrame(t *testing.T) { // A29
	s := newStore(t)
	agents, tails := s.filled(3)
	a, b := agents[0], agents[1]
	s = s.stopped(func(dir string) { embeddedtest.Flip(t, dir, streamOf(a), string(tails[0].Frame)) })
	damage := new(eventlog.DamageError)
	if tail, err := s.log.Head(t.Context(), a); !errors.As(err, &damage) {
		t.Errorf("tail %+v, %v", tail, err)
	}
	for r, err := range s.log.Read(t.Context(), a, eventlog.Range{}) {
		if !errors.As(err, &damage) {
			t.Errorf("read %+v, %v", r, err)
		}
	}
	if tail, err := s.log.Head(t.Context(), b); err != nil || tail != tails[1] {
		t.Errorf("the neighbour's tail %+v, %v; want %+v", tail, err, tails[1])
	}
	if tail, err := s.log.Head(t.Context(), logtest.Neighbours(3)[2]); err != nil || tail != (eventlog.Position{}) {
		t.Errorf("of an agent that never was: %+v, %v", tail, err)
	}
}

// The newest message of a partition cannot be read, and the leader answers as if there were none:
// the heads of the agents before it are given all the same.
func TestHeadsBeforeADamagedOne(t *testing.T) { // A29
	s := newStore(t)
	agents, tails := s.filled(3)
	s = s.stopped(func(dir string) { embeddedtest.Flip(t, dir, streamOf(agents[1]), string(tails[1].Frame)) })
	for next := followed(t, s.log, agents[0].Partition()); ; {
		if head := next(); head.Agent == agents[0] && head.Seq == tails[0].Seq {
			return
		}
	}
}

// TestPurgedIsNotLost purges, also with an outcome that was never recorded.
func TestPurgedIsNotLost(t *testing.T) {
	s := newStore(t)
	agents, tails := s.filled(4)
	a := agents[0]
	if err := s.log.Purge(t.Context(), a, tails[0].Seq); err != nil {
		t.Fatal(err)
	}
	if loss := s.check(a); loss != nil {
		t.Fatalf("after a purge: %v", loss)
	}
	if err := s.log.Purge(t.Context(), a, tails[0].Seq); err != nil {
		t.Fatalf("again: %v", err)
	}
	s = s.crashed(func(string) {})
	if loss := s.check(a); loss != nil {
		t.Fatalf("after a purge and a crash: %v", loss)
	}
	_, err := s.log.Append(t.Context(), logtest.Entry(t, agents[1], tails[1]))
	if err != nil {
		t.Fatal(err)
	}
	s.mark(a)
	js, err := jetstream.New(s.nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), streamOf(a))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), tails[1].Seq-2); err != nil { // as an administrator might
		t.Fatal(err)
	}
	loss := s.check(a)
	if loss == nil || loss.Missing != 1 {
		t.Fatalf("loss %+v, want 1 message", loss)
	}
	accepted, now, err := s.log.Accept(t.Context(), s.log.ShardOf(a), "ada", "it was a test")
	if err != nil || !now || accepted.By != "ada" || accepted.Loss != loss.Detail {
		t.Fatalf("accepted %+v, %v", accepted, err)
	}
	if loss := s.check(a); loss != nil || s.log.Accepted(a.Partition()).IsZero() {
		t.Fatalf("after the loss was accepted: %v, %v", loss, s.log.Accepted(a.Partition()))
	}
	if again, now, err := s.log.Accept(t.Context(), s.log.ShardOf(a), "bob", "twice"); now || err != nil || again.By != "ada" {
		t.Fatalf("accepted what was not lost: %+v, %v", again, err)
	}
	if at := s.log.Position(a.Partition()); at.Last != 0 || s.log.Marked(a.Partition()) != 0 {
		t.Errorf("under the new record %+v is known, and %d recorded", at, s.log.Marked(a.Partition()))
	}
	if err := s.log.Purge(t.Context(), agents[1], tails[1].Seq); err != nil {
		t.Fatal(err)
	}
	if loss := s.check(a); loss != nil {
		t.Fatalf("after a purge under the new record: %v", loss)
	}
}

// TestShortenedLogIsDoubted appends behind a frame that the stream has lost.
func TestShortenedLogIsDoubted(t *testing.T) {
	s := newStore(t)
	agents, tails := s.filled(2)
	a := agents[0]
	js, err := jetstream.New(s.nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), streamOf(a))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), tails[0].Seq); err != nil {
		t.Fatal(err)
	}
	var conflict *eventlog.ConflictError
	if _, err := s.log.Append(t.Context(), logtest.Entry(t, a, tails[0])); !errors.As(err, &conflict) {
		t.Fatalf("appended: %v", err)
	}
	select {
	case shard := <-s.doubted:
		if shard != s.log.ShardOf(a) {
			t.Errorf("shard %d is doubted", shard)
		}
	default:
		t.Error("nothing is doubted")
	}
}

// TestPurgesAtOnce purges several agents of one partition at the same time.
func TestPurgesAtOnce(t *testing.T) {
	s := newStore(t)
	agents := logtest.Neighbours(6)
	tails := make([]eventlog.Position, len(agents))
	for range 4 {
		for i, a := range agents {
			var err error
			if tails[i], err = s.log.Append(t.Context(), logtest.Entry(t, a, tails[i])); err != nil {
				t.Fatal(err)
			}
		}
	}
	var purges sync.WaitGroup
	for i, a := range agents {
		purges.Go(func() {
			if err := s.log.Purge(t.Context(), a, tails[i].Seq); err != nil {
				t.Error(err)
			}
		})
	}
	purges.Wait()
	if loss := s.check(agents[0]); loss != nil {
		t.Error(loss)
	}
	for i, a := range agents {
		if js, err := jetstream.New(s.nc); err != nil {
			t.Fatal(err)
		} else if stream, err := js.Stream(t.Context(), streamOf(a)); err != nil {
			t.Fatal(err)
		} else if info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(messages.Subjects{}.Log(a))); err != nil || info.State.Subjects[messages.Subjects{}.Log(a)] != 1 {
			t.Errorf("agent %d has %d messages, %v", i, info.State.Subjects[messages.Subjects{}.Log(a)], err)
		}
	}
}

// TestPurgeOfAnotherOwner has a partition move away and back: its owner in between
// purged.
func TestPurgeOfAnotherOwner(t *testing.T) {
	s := newStore(t)
	agents, tails := s.filled(4)
	between := openStoreOn(t, s)
	if err := between.log.Purge(t.Context(), agents[0], tails[0].Seq); err != nil {
		t.Fatal(err)
	}
	if err := s.log.Purge(t.Context(), agents[1], tails[1].Seq); err != nil {
		t.Fatal(err)
	}
	if loss := s.check(agents[0]); loss != nil {
		t.Error(loss)
	}
}

// TestPurgeCutOff has an owner die after it recorded that it would purge: before the
// purge, and after it.
func TestPurgeCutOff(t *testing.T) {
	s := newStore(t)
	agents, tails := s.filled(4)
	a, b := agents[0], agents[1]
	log := messages.Subjects{}.Log(a)
	s.changeMark(a, func(mark map[string]any) {
		mark["purge"] = map[string]any{"subject": log, "before": tails[0].Seq, "messages": 3}
	})
	if loss := s.check(a); loss != nil {
		t.Fatalf("before the purge: %v", loss)
	}
	js, err := jetstream.New(s.nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), streamOf(a))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(log), jetstream.WithPurgeSequence(tails[0].Seq)); err != nil {
		t.Fatal(err)
	}
	if loss := s.check(a); loss != nil {
		t.Fatalf("after the purge: %v", loss)
	}
	if err := s.log.Purge(t.Context(), b, tails[1].Seq); err != nil { // with what it has read before
		t.Fatal(err)
	}
	if loss := s.check(a); loss != nil {
		t.Fatalf("after the next purge: %v", loss)
	}
	s.changeMark(a, func(mark map[string]any) {
		if mark["purged"] != 6.0 || mark["purge"] != nil {
			t.Errorf("the mark is %v", mark)
		}
	})
}

// lagging returns a store whose consumers are made on a copy that lacks the newest message: those
// with a filter, or those without one.
func lagging(t *testing.T, filtered bool) *store {
	t.Helper()
	rest := ""
	if filtered {
		rest = ".>"
	}
	conns := connected(t, configured(t, fmt.Sprintf("jetstream: enabled\nmappings = { \"$JS.API.CONSUMER.CREATE.*.*%s\": \"lags.{{wildcard(1)}}.{{wildcard(2)}}%s\" }\n", rest, rest)))
	_, err := conns[1].Subscribe("lags.>", func(m *nats.Msg) {
		names, data := strings.SplitN(m.Subject, ".", 4), m.Data
		subject := "$JS.API.CONSUMER.CREATE." + names[1] + "." + names[2] // which the server does not map
		if !filtered {
			subject, data = subject+".>", bytes.Replace(data, []byte(`"config":{`), []byte(`"config":{"filter_subject":">",`), 1)
		}
		answer, err := conns[1].Request(subject, data, 10*time.Second)
		var got map[string]any
		if err == nil {
			err = json.Unmarshal(answer.Data, &got)
		}
		if pending, _ := got["num_pending"].(float64); pending > 0 {
			got["num_pending"] = pending - 1
		}
		b, failed := json.Marshal(got)
		if err = errors.Join(err, failed, m.Respond(b)); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &store{t: t, nc: conns[0], doubted: make(chan int, 100)}
	if s.log, err = natslog.Open(t.Context(), natslog.Config{Conns: []*nats.Conn{s.nc}, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPurgeBesideACopyThatLags has a message be lost after a purge: it is reported all the same.
func TestPurgeBesideACopyThatLags(t *testing.T) {
	t.Parallel()
	s := lagging(t, true)
	agents, tails := s.filled(4)
	if err := s.log.Purge(t.Context(), agents[0], tails[0].Seq); err != nil {
		t.Fatal(err)
	}
	if loss := s.check(agents[0]); loss != nil {
		t.Fatal(loss)
	}
	js, err := jetstream.New(s.nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), streamOf(agents[0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), tails[1].Seq-2); err != nil {
		t.Fatal(err)
	}
	if loss := s.check(agents[0]); loss == nil || loss.Missing != 1 {
		t.Errorf("loss %+v, want 1 message", loss)
	}
}

// changeMark changes what is recorded of an agent's partition.
func (s *store) changeMark(a messages.AgentID, change func(map[string]any)) {
	s.t.Helper()
	js, err := jetstream.New(s.nc)
	if err != nil {
		s.t.Fatal(err)
	}
	marks, err := js.Stream(s.t.Context(), natslog.MarksOf(messages.Subjects{}))
	if err != nil {
		s.t.Fatal(err)
	}
	subject := fmt.Sprintf("$KV.reprise_marks.p.%02d", int(a.Partition()))
	m, err := marks.GetLastMsgForSubject(s.t.Context(), subject)
	if err != nil {
		s.t.Fatal(err)
	}
	var mark map[string]any
	if err := json.Unmarshal(m.Data, &mark); err != nil {
		s.t.Fatal(err)
	}
	change(mark)
	b, err := json.Marshal(mark)
	if err == nil {
		_, err = js.Publish(s.t.Context(), subject, b)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestPurgedCameBack has messages be there that were purged, as after a kill of the
// server: they are no loss, and hide none.
func TestPurgedCameBack(t *testing.T) {
	s := newStore(t)
	agents, tails := s.filled(4)
	a := agents[0]
	s.changeMark(a, func(mark map[string]any) { mark["purged"] = 3 })
	for range 2 {
		if loss := s.check(a); loss != nil {
			t.Fatal(loss)
		}
	}
	js, err := jetstream.New(s.nc)
	if err != nil {
		t.Fatal(err)
	}
	bases, err := js.Stream(t.Context(), natslog.MarksOf(messages.Subjects{}))
	if err != nil {
		t.Fatal(err)
	}
	base, err := bases.GetLastMsgForSubject(t.Context(), fmt.Sprintf("$KV.reprise_marks.log.%d", s.log.ShardOf(a)))
	if err != nil || !strings.Contains(string(base.Data), `"returned":3,`) {
		t.Errorf("the base is %s, %v", base.Data, err)
	}
	s = openStoreOn(t, s)
	if err := s.log.Purge(t.Context(), a, tails[0].Seq); err != nil {
		t.Fatal(err)
	}
	if loss := s.check(a); loss != nil {
		t.Fatalf("after the next purge: %v", loss)
	}
}

// openStoreOn opens the log of a store a second time, as another node does.
func openStoreOn(t *testing.T, s *store) *store {
	t.Helper()
	again := *s
	var err error
	if again.log, err = natslog.Open(t.Context(), natslog.Config{Conns: []*nats.Conn{s.nc}, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	return &again
}

// TestWitnessIsEvidence has a witness that knows more of a stream than is on record.
func TestWitnessIsEvidence(t *testing.T) {
	s := newStore(t)
	agents, tails := s.filled(1)
	shard := s.log.ShardOf(agents[0])
	s.log.Witness(shard, tails[1].Seq)
	if loss := s.check(agents[0]); loss != nil {
		t.Fatal(loss)
	}
	s.log.Witness(shard, tails[1].Seq+5)
	if loss := s.check(agents[0]); loss == nil || loss.Known != tails[1].Seq+5 || loss.Found != tails[1].Seq {
		t.Fatalf("loss %+v", loss)
	}
}

// TestUnusedSequences has a stream lack sequences above all that was acknowledged, as
// after its disk was full, also where what is there is counted on a copy that lags.
func TestUnusedSequences(t *testing.T) {
	t.Run("one copy", func(t *testing.T) { unusedSequences(t, newStore(t)) })
	t.Run("one that lags", func(t *testing.T) { unusedSequences(t, lagging(t, false)) })
}

func unusedSequences(t *testing.T, s *store) {
	agents, tails := s.filled(2)
	js, err := jetstream.New(s.nc)
	if err != nil {
		t.Fatal(err)
	}
	var last uint64
	for range 2 { // which no Log was acknowledged
		ack, err := js.Publish(t.Context(), messages.Subjects{}.Log(agents[0]), []byte("refused"))
		if err != nil {
			t.Fatal(err)
		}
		last = ack.Sequence
	}
	stream, err := js.Stream(t.Context(), streamOf(agents[0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	loss := s.check(agents[0])
	if loss == nil || !loss.Unacknowledged || loss.Missing != 1 || loss.Known != tails[1].Seq {
		t.Fatalf("loss %+v", loss)
	}
	if err := s.log.Void(t.Context(), s.log.ShardOf(agents[0]), loss); err != nil {
		t.Fatal(err)
	}
	if err := s.log.Void(t.Context(), s.log.ShardOf(agents[0]), loss); err == nil {
		t.Error("the same loss was taken in twice")
	}
	if loss := s.check(agents[0]); loss != nil {
		t.Error(loss)
	}
}

// TestHold appends to a stream that must be checked first.
func TestHold(t *testing.T) {
	s := newStore(t)
	a := logtest.Agent("ada")
	e := logtest.Entry(t, a, eventlog.Position{})
	s.log.Hold(s.log.ShardOf(a), true)
	if _, err := s.log.Append(t.Context(), e); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("appended: %v", err)
	}
	if tail, err := s.log.Head(t.Context(), a); err != nil || tail.Seq != 0 {
		t.Errorf("stored %+v, %v", tail, err)
	}
	s.log.Hold(s.log.ShardOf(a), false)
	if _, err := s.log.Append(t.Context(), e); err != nil {
		t.Error(err)
	}
}
