package natslog_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// scrubbed is how far the agent's stream was read through.
func (s *store) scrubbed(a messages.AgentID) natslog.Scrub {
	s.t.Helper()
	s.check(a)
	at, err := s.log.Scrubbed(s.t.Context(), s.log.ShardOf(a))
	if err != nil {
		s.t.Fatal(err)
	}
	return at
}

// scrub reads the agent's stream through to its end, in calls that each read so many
// bytes, and records how far it is after each.
func (s *store) scrub(a messages.AgentID, bytes int) (at natslog.Scrub, found []natslog.Unreadable) {
	s.t.Helper()
	for {
		next, more, err := s.log.Scrub(s.t.Context(), s.log.ShardOf(a), s.scrubbed(a), natslog.ScrubLimits{Bytes: bytes})
		if err == nil {
			err = s.log.SaveScrub(s.t.Context(), s.log.ShardOf(a), next)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if found = append(found, more...); next.Begun.IsZero() {
			return s.scrubbed(a), found
		}
	}
}

func (s *store) append(a messages.AgentID, after eventlog.Position) eventlog.Position {
	s.t.Helper()
	tail, err := s.log.Append(s.t.Context(), logtest.Entry(s.t, a, after))
	if err != nil {
		s.t.Fatal(err)
	}
	return tail
}

// places are the sequences and agents of what cannot be read and is needed.
func places(all []natslog.Unreadable) (places []natslog.Unreadable) {
	for _, u := range all {
		if u.Ended {
			continue
		}
		places = append(places, natslog.Unreadable{Seq: u.Seq, Agent: u.Agent})
	}
	return places
}

// TestScrub flips bits of frames that no one else reads, beside purged ones and a foreign
// message, and finds exactly those.
func TestScrub(t *testing.T) { // A29
	s := newStore(t)
	agents := logtest.Neighbours(5)
	flipped, sound, once, purged, forged := agents[0], agents[1], agents[2], agents[3], agents[4]
	var tails [4][]eventlog.Position
	for round := range 6 {
		for i, a := range agents[:4] {
			if a == once && round != 3 {
				continue
			}
			var after eventlog.Position
			if len(tails[i]) > 0 {
				after = tails[i][len(tails[i])-1]
			}
			tails[i] = append(tails[i], s.append(a, after))
		}
	}
	js, err := jetstream.New(s.nc)
	if err != nil {
		t.Fatal(err)
	}
	e := logtest.Entry(t, forged, eventlog.Position{})
	e.Bytes[len(e.Bytes)/2] ^= 1 // which only our own checksum shows
	ack, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: messages.Subjects{}.Log(forged), Header: natslog.FrameHeader(e), Data: e.Bytes})
	if err == nil {
		_, err = js.Publish(t.Context(), messages.Subjects{}.Log(sound), []byte("who am I"))
	}
	if err == nil {
		err = s.log.Purge(t.Context(), purged, tails[3][5].Seq)
	}
	if err != nil {
		t.Fatal(err)
	}
	bad := []natslog.Unreadable{{Seq: ack.Sequence, Agent: forged}}
	if at, found := s.scrub(flipped, 0); !slices.Equal(places(at.Bad), bad) || !slices.Equal(places(found), bad) || at.Whole.IsZero() || at.After != ack.Sequence+1 || at.Unjudged > 0 {
		t.Fatalf("of a store that is sound but for sequence %d: %+v, found %v", ack.Sequence, at, found)
	}
	if _, found := s.scrub(flipped, 0); len(found) > 0 {
		t.Errorf("found for the first time, twice: %v", found)
	}

	frame := string(tails[0][2].Frame) // which stands last in the frame that follows it
	s = s.stopped(func(dir string) {
		embeddedtest.Flip(t, dir, streamOf(flipped), frame)
		embeddedtest.Flip(t, dir, streamOf(once), string(tails[2][0].Frame))
	})
	hit, lone := tails[0][3].Seq, tails[2][0].Seq
	want := append(bad, natslog.Unreadable{Seq: hit, Agent: flipped}, natslog.Unreadable{Seq: lone, Agent: once})
	slices.SortFunc(want, func(a, b natslog.Unreadable) int { return int(a.Seq) - int(b.Seq) })
	for _, bytes := range []int{1, 0} { // message by message, and all at once
		if at, _ := s.scrub(flipped, bytes); !slices.Equal(places(at.Bad), want) {
			t.Errorf("in steps of %d bytes: %+v, want %v", bytes, at.Bad, want)
		}
	}
	if loss := s.check(flipped); loss != nil {
		t.Errorf("the server does not count what it cannot read: %v", loss)
	}

	// What belonged to a deleted agent is no damage, though the server does not purge it, nor
	// is what can be read again.
	end, err := s.log.Append(t.Context(), logtest.Entry(t, flipped, tails[0][5], messages.AgentDeleted{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.log.Purge(t.Context(), flipped, end.Seq); messages.AsError(err).Code != messages.Unavailable || !strings.Contains(err.Error(), "cannot read 2 messages") {
		t.Errorf("purged from a stream whose server would then drop others: %v", err)
	}
	s.purge(flipped, end.Seq) // as before the damage was found
	s = s.stopped(func(dir string) {
		lost := string(tails[2][0].Frame)
		embeddedtest.Flip(t, dir, streamOf(once), string(lost[0]^1)+lost[1:])
	})
	at, err := s.log.Rescrub(t.Context(), s.log.ShardOf(flipped), s.scrubbed(flipped))
	if err != nil || !slices.Equal(places(at.Bad), bad) {
		t.Errorf("still %+v, %v; want %v", at.Bad, err, bad)
	}
	if at, found := s.scrub(flipped, 0); !slices.Equal(places(at.Bad), bad) || len(found) > 0 {
		t.Errorf("found %v: %+v", found, at.Bad)
	}
}

// purge removes an agent's messages below a sequence, whatever is known of the stream.
func (s *store) purge(a messages.AgentID, before uint64) {
	s.t.Helper()
	js, err := jetstream.New(s.nc)
	if err != nil {
		s.t.Fatal(err)
	}
	stream, err := js.Stream(s.t.Context(), streamOf(a))
	if err == nil {
		err = stream.Purge(s.t.Context(), jetstream.WithPurgeSubject(messages.Subjects{}.Log(a)), jetstream.WithPurgeSequence(before))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestScrubIsContinued has another node continue where one stopped, and begin again when
// the stream's record does.
func TestScrubIsContinued(t *testing.T) {
	s := newStore(t)
	agents, tails := s.filled(3)
	a, shard := agents[0], s.log.ShardOf(agents[0])
	if _, err := s.log.Scrubbed(t.Context(), shard+1); err == nil {
		t.Error("a stream that was not checked is read through")
	}
	half, _, err := s.log.Scrub(t.Context(), shard, s.scrubbed(a), natslog.ScrubLimits{Bytes: 1000})
	if err == nil {
		err = s.log.SaveScrub(t.Context(), shard, half)
	}
	if err != nil || half.After < 2 || half.After >= half.Last || half.Last != tails[1].Seq || half.Begun.IsZero() || !half.Whole.IsZero() {
		t.Fatalf("%+v, %v", half, err)
	}

	s.append(a, tails[0]) // behind the end of the pass
	other := &store{t: t, nc: s.nc}
	if other.log, err = natslog.Open(t.Context(), natslog.Config{Conns: []*nats.Conn{s.nc}, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	if at := other.scrubbed(a); at.After != half.After || !at.Begun.Equal(half.Begun) {
		t.Errorf("another node begins at %+v, want %+v", at, half)
	}
	if at, _ := other.scrub(a, 0); at.After != half.Last || at.Whole.IsZero() {
		t.Errorf("the pass that was continued ended with %+v", at)
	}
	if err := s.log.SaveScrub(t.Context(), shard, half); err == nil {
		t.Error("an owner that was replaced has put the place back")
	}
	if at, _ := s.scrub(a, 0); at.Last != half.Last+1 {
		t.Errorf("the next pass ended with %+v", at)
	}

	js, err := jetstream.New(s.nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), streamOf(a))
	if err == nil {
		err = stream.DeleteMsg(t.Context(), tails[1].Seq)
	}
	if err == nil {
		_, _, err = s.log.Accept(t.Context(), shard, "ada", "it was a test")
	}
	if err != nil {
		t.Fatal(err)
	}
	if at := s.scrubbed(a); at.After != 0 || !at.Whole.IsZero() {
		t.Errorf("of what was there before the loss was accepted: %+v", at)
	}
	if at, found := s.scrub(a, 0); len(found) > 0 || len(at.Bad) > 0 {
		t.Errorf("what was lost and accepted cannot be read: %v", at.Bad)
	}
}

// TestScrubOfHiddenMessages has a purge make an unreadable message the first of the stream.
// The NATS server then hides all that is there at the next append, and still counts it.
func TestScrubOfHiddenMessages(t *testing.T) {
	s := newStore(t)
	agents := logtest.Neighbours(2)
	first := s.append(agents[0], eventlog.Position{})
	third := s.append(agents[0], s.append(agents[0], first))
	s.append(agents[1], eventlog.Position{})
	newest := s.append(agents[0], third)
	s.mark(agents[0])
	s = s.stopped(func(dir string) { embeddedtest.Flip(t, dir, streamOf(agents[0]), string(first.Frame)) }) // in the second
	if err := s.log.Purge(t.Context(), agents[0], newest.Seq); !errors.Is(err, eventlog.ErrStays) {
		t.Fatal(err)
	}
	if at, _ := s.scrub(agents[0], 0); at.Hidden != 0 || len(at.Bad) != 1 {
		t.Errorf("before the server hides anything: %+v", at)
	}
	s.append(agents[0], newest)
	if at, _ := s.scrub(agents[0], 0); at.Hidden != 3 {
		t.Errorf("the server hides the unreadable one and the two behind it: %+v", at)
	}
}

// TestScrubOfTheEnd has nothing that can be read behind what cannot.
func TestScrubOfTheEnd(t *testing.T) { // A29
	s := newStore(t)
	agents, tails := s.filled(2)
	s = s.stopped(func(dir string) { embeddedtest.Flip(t, dir, streamOf(agents[1]), string(tails[1].Frame)) })
	want := []natslog.Unreadable{{Seq: tails[1].Seq, Agent: agents[1]}}
	if at, found := s.scrub(agents[0], 0); !slices.Equal(places(at.Bad), want) || !slices.Equal(places(found), want) || at.After != tails[1].Seq {
		t.Errorf("found %v: %+v, want %v", found, at, want)
	}
}

// TestScrubOfWhatAReplicaLacks scrubs a stream whose consumer's server brings nothing, while
// the leader can read all but sequence 2.
func TestScrubOfWhatAReplicaLacks(t *testing.T) { // A29
	t.Parallel()
	nc := answered(t, map[string]func(*nats.Msg) *nats.Msg{
		"CONSUMER.CREATE.S.>": func(*nats.Msg) *nats.Msg {
			return &nats.Msg{Data: []byte(`{"stream_name":"S","num_pending":3}`)}
		},
		"CONSUMER.MSG.NEXT.S.*": func(*nats.Msg) *nats.Msg {
			return &nats.Msg{Header: nats.Header{"Status": {"404"}, "Description": {"No Messages"}}}
		},
		"STREAM.INFO.S": func(*nats.Msg) *nats.Msg {
			return &nats.Msg{Data: []byte(`{"state":{"messages":3,"first_seq":1,"last_seq":3}}`)}
		},
		"STREAM.MSG.GET.S": func(m *nats.Msg) *nats.Msg {
			if string(m.Data) == `{"seq":2}` {
				return &nats.Msg{Data: []byte(`{"error":{"code":404,"err_code":10037}}`)}
			}
			return &nats.Msg{Data: []byte(`{"message":{"subject":"s","seq":1}}`)}
		},
	})
	at, bad, err := natslog.ScrubTo(t.Context(), nc, "S", 3)
	if err != nil || at != 3 || len(bad) != 1 || bad[0].Seq != 2 || bad[0].Given {
		t.Errorf("read up to %d, unreadable %+v, %v; want 3, and sequence 2", at, bad, err)
	}
}
