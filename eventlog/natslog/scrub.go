package natslog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"

	"github.com/reprise-dev/reprise/messages"
)

// An agent is loaded from its newest snapshot and the frames above it, and the server
// leaves out what it cannot read: a frame below a snapshot that was damaged on disk is
// never read, and never missed. A scrub reads a stream of the log through and
// compares the sequences that come with those that the stream holds. Its progress is
// kept in the bucket of marks, so that another owner continues it:
//
//	scrub.<n>   a Scrub: how far stream n was read, and what could not be read
const (
	// scrubListed is how many unreadable messages of a stream are listed; the others are
	// counted.
	scrubListed = 100
	// scrubSuspects is how many messages are read a second time in one call.
	scrubSuspects = 1000
	// scrubDeleted is how many sequences the server is asked to name that were deleted:
	// it names all at once, in about ten bytes each.
	scrubDeleted = 1 << 20
	// scrubMute is how many agents of a stream are asked for their newest message.
	scrubMute = 10_000
	// scrubBurst is how many bytes a scrub may read at once, whatever its rate.
	scrubBurst = 1 << 20
)

// Unreadable is a message that a stream of the log holds and that cannot be read.
type Unreadable struct {
	Seq uint64 `json:"seq"`
	// Agent is the one whose message it is. Zero: it is not known.
	Agent messages.AgentID `json:"agent,omitzero"`
	// Detail says what is wrong with it.
	Detail string `json:"detail"`
	// Given reports that the server can read it, and only its frame is damaged.
	Given bool `json:"given,omitempty"`
	// Ended reports that its agent was deleted since, so that it is not needed. It is there
	// still, for a server purges only what it can read.
	Ended bool `json:"ended,omitempty"`
}

// Scrub is how far a stream of the log was read through. The zero value has read
// nothing.
type Scrub struct {
	// Base is the record that it belongs to: once a loss is accepted or a backup
	// restored, the stream is read from its beginning.
	Base string `json:"base"`
	// After is the last sequence that the newest pass has read, Last the one that it
	// ends with: the stream's last when it began.
	After uint64 `json:"after"`
	Last  uint64 `json:"last"`
	// Begun is when the pass under way began. Zero: none is.
	Begun time.Time `json:"begun,omitzero"`
	// Whole is when the last pass that reached its end did so. Zero: none has.
	Whole time.Time `json:"whole,omitzero"`
	// Bad are messages that cannot be read, by sequence, also those that are not needed. What
	// a pass finds readable, or purged, is removed.
	Bad []Unreadable `json:"bad,omitempty"`
	// More is how many beyond those in Bad were found since the pass began.
	More int `json:"more,omitempty"`
	// Unjudged counts the sequences without a message, met since the pass began, that may or
	// may not have been purged: too many were deleted to find out.
	Unjudged uint64 `json:"unjudged,omitempty"`
	// Hidden is how many messages the server counted, when it was last asked, that it
	// neither gave nor called deleted. nats-server 2.15.2 hides the messages of its newest
	// block at the next append, once a purge has made one that it cannot read the first of
	// that block.
	Hidden uint64 `json:"hidden,omitempty"`

	rev uint64
}

// ScrubLimits bound what one call of [Log.Scrub] does.
type ScrubLimits struct {
	// Bytes is how much it reads, about. Zero: up to the end of the stream.
	Bytes int
	// Rate is how much it reads in a second, in bytes. Zero: as fast as it can.
	Rate int
}

func scrubKey(shard int) string { return "scrub." + strconv.Itoa(shard) }

// Scrubbed returns how far a stream of the log was read through, by any process. The
// stream must have been checked.
func (l *Log) Scrubbed(ctx context.Context, shard int) (Scrub, error) {
	b := l.marks.bases[shard].Load()
	if b == nil {
		return Scrub{}, fmt.Errorf("stream %s was not checked yet", l.names.log(shard))
	}
	var s Scrub
	rev, err := l.getMark(ctx, scrubKey(shard), &s)
	if err != nil {
		return Scrub{}, fmt.Errorf("read how far stream %s is scrubbed: %w", l.names.log(shard), err)
	}
	if s.Base != b.ID {
		s = Scrub{Base: b.ID, Bad: s.Bad} // what cannot be read is no better for it
	}
	s.rev = rev
	return s, nil
}

// SaveScrub records how far a stream was read through. It fails if another process has
// recorded something since s was read.
func (l *Log) SaveScrub(ctx context.Context, shard int, s Scrub) error {
	if _, err := l.putMark(ctx, scrubKey(shard), s, s.rev); err != nil {
		return fmt.Errorf("record how far stream %s is scrubbed: %w", l.names.log(shard), err)
	}
	return nil
}

// Scrub reads a stream of the log on from where s stopped, or from its beginning if the
// last pass has ended, and returns how far it is then, with those of Bad that s did not
// list. It records nothing. What cannot be read is read a second time before it counts.
func (l *Log) Scrub(ctx context.Context, shard int, s Scrub, limits ScrubLimits) (next Scrub, found []Unreadable, err error) {
	stream, c, err := l.shard(shard)
	if err != nil {
		return s, nil, err
	}
	info, err := c.details(ctx, stream, streamDetails{})
	if err != nil {
		return s, nil, err
	}
	if s.Begun.IsZero() {
		s.Begun, s.After, s.Last, s.More, s.Unjudged = time.Now().UTC(), 0, info.State.LastSeq, 0, 0
	}
	s.Last = min(s.Last, info.State.LastSeq) // a power loss may have taken what was not on disk
	s.After = min(s.After, s.Last)
	p := &scrubPass{l: l, c: c, stream: stream, at: s.After, end: s.Last, left: cmp.Or(limits.Bytes, math.MaxInt), hidden: s.Hidden, unnamed: s.unnamed(), names: make(map[uint64]messages.AgentID)}
	if first := info.State.FirstSeq; first > 0 {
		p.at = min(max(p.at, first-1), p.end)
	}
	if err := p.read(ctx, limits.Rate); err != nil {
		return s, nil, fmt.Errorf("scrub stream %s behind sequence %d: %w", stream, p.at, err)
	}
	bad, err := p.judge(ctx)
	if err != nil {
		return s, nil, fmt.Errorf("scrub stream %s up to sequence %d: %w", stream, p.at, err)
	}
	next = s.merge(p.at, bad, p.names)
	next.Unjudged, next.Hidden = next.Unjudged+p.unjudged, p.hidden
	if next.After >= next.Last {
		next.Begun, next.Whole = time.Time{}, time.Now().UTC()
		if err := l.nameNewest(ctx, c, stream, &next); err != nil {
			return s, nil, err
		}
	}
	if err := l.end(ctx, c, stream, next.Bad); err != nil {
		return s, nil, err
	}
	return next, s.fresh(next), nil
}

// Rescrub looks again at what could not be read, and returns s without what can be read
// now or was purged, and with what has Ended since.
func (l *Log) Rescrub(ctx context.Context, shard int, s Scrub) (Scrub, error) {
	stream, c, err := l.shard(shard)
	if err != nil {
		return s, err
	}
	p := &scrubPass{l: l, c: c, stream: stream}
	for _, u := range s.Bad {
		p.suspects = append(p.suspects, u.Seq)
	}
	still, err := p.confirm(ctx)
	if err != nil {
		return s, fmt.Errorf("read what could not be read of stream %s: %w", stream, err)
	}
	s.Bad = slices.DeleteFunc(slices.Clone(s.Bad), func(u Unreadable) bool {
		return !slices.ContainsFunc(still, func(t Unreadable) bool { return t.Seq == u.Seq })
	})
	if err := l.end(ctx, c, stream, s.Bad); err != nil {
		return s, fmt.Errorf("look up whose messages cannot be read in stream %s: %w", stream, err)
	}
	return s, nil
}

// unnamed returns the sequences of the messages whose agent is not known.
func (s Scrub) unnamed() (seqs []uint64) {
	for _, u := range s.Bad {
		if u.Agent == (messages.AgentID{}) {
			seqs = append(seqs, u.Seq)
		}
	}
	return seqs
}

// merge takes in what was found unreadable from s.After on up to a sequence, and whose
// messages some are.
func (s Scrub) merge(to uint64, bad []Unreadable, names map[uint64]messages.AgentID) (next Scrub) {
	next, next.Bad = s, nil
	known := make(map[uint64]Unreadable, len(s.Bad))
	for _, u := range s.Bad {
		known[u.Seq] = u
		if u.Seq <= s.After || u.Seq > to {
			bad = append(bad, u)
		}
	}
	slices.SortFunc(bad, func(a, b Unreadable) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, u := range bad {
		u.Agent = cmp.Or(u.Agent, known[u.Seq].Agent, names[u.Seq])
		if len(next.Bad) < scrubListed {
			next.Bad = append(next.Bad, u)
		} else {
			next.More++
		}
	}
	next.After = to
	return next
}

// fresh returns what next lists and s does not, but for what is not needed.
func (s Scrub) fresh(next Scrub) (found []Unreadable) {
	for _, u := range next.Bad {
		if !u.Ended && !slices.ContainsFunc(s.Bad, func(was Unreadable) bool { return was.Seq == u.Seq }) {
			found = append(found, u)
		}
	}
	return found
}

// scrubPass is one stretch of a stream that is read through.
type scrubPass struct {
	l       *Log
	c       *conn
	stream  string
	at, end uint64 // the last sequence that was read, and the last that is to be
	left    int    // bytes that may be read
	gaps    []gap  // without a message, ascending
	// unnamed are unreadable messages whose agent is not known; names has the agents of some
	// of them, and of some messages in gaps.
	unnamed  []uint64
	names    map[uint64]messages.AgentID
	suspects []uint64
	unjudged uint64
	hidden   uint64
}

// gap is a range of sequences, both ends included.
type gap struct{ from, to uint64 }

// read reads on until there is no more, or enough was read. What the consumer's server lacks
// while the leader has it is passed over after a while: confirm asks the leader for it.
func (p *scrubPass) read(ctx context.Context, perSecond int) error {
	if p.at >= p.end {
		return nil
	}
	f, err := p.c.feed(ctx, p.stream, jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: p.at + 1, InactiveThreshold: longExpires})
	if err != nil {
		return err
	}
	defer f.close()
	pace := rate.NewLimiter(rate.Inf, scrubBurst)
	if perSecond > 0 {
		pace.SetLimit(rate.Limit(perSecond))
	}
	err = f.all(ctx, func(m *delivery) bool {
		left := p.left
		p.take(m)
		_ = pace.WaitN(ctx, min(left-p.left, scrubBurst)) // fails if ctx ends, as the next fetch does
		return p.at < p.end && p.left > 0 && len(p.suspects) < scrubSuspects
	}, func() (more bool, err error) {
		next, err := p.c.get(ctx, p.stream, place{Seq: p.at + 1, Next: ">"})
		if err == nil && (next == nil || next.seq > p.end) { // else the consumer's server lags behind the leader
			p.skip(p.end)
		}
		return p.at < p.end, err
	})
	if errors.Is(err, errSilent) {
		p.skip(p.end)
		return nil
	}
	return err
}

// take takes in a message that can be read, and that those before it did not come.
func (p *scrubPass) take(m *delivery) {
	p.skip(min(m.seq-1, p.end))
	if m.seq > p.end {
		return
	}
	p.at = m.seq
	p.left -= len(m.data) + headroomOf(m.header)
	a, why := p.check(&m.stored)
	if why != nil {
		p.suspects = append(p.suspects, m.seq)
	}
	fence, err := strconv.ParseUint(m.header.Get(headerFence), 10, 64)
	if err == nil && (slices.Contains(p.unnamed, fence) || p.inGap(fence)) {
		p.names[fence] = a
	}
}

// headroomOf is about how much a message's headers take.
func headroomOf(h nats.Header) (n int) {
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v)
		}
	}
	return n
}

// check returns what is wrong with a message, and whose it is. One that is no frame is no
// fault of the store.
func (p *scrubPass) check(m *stored) (messages.AgentID, error) {
	a, err := p.l.subjects.ParseLog(m.subject)
	if err != nil || !m.isFrame() {
		return a, nil
	}
	return a, m.decoded(a).err
}

// skip notes that nothing came up to a sequence.
func (p *scrubPass) skip(to uint64) {
	if to > p.at {
		p.gaps = append(p.gaps, gap{p.at + 1, to})
		p.at = to
	}
}

func (p *scrubPass) inGap(seq uint64) bool {
	i, _ := slices.BinarySearchFunc(p.gaps, seq, func(g gap, seq uint64) int { return cmp.Compare(g.to, seq) })
	return i < len(p.gaps) && p.gaps[i].from <= seq
}

// judge returns what cannot be read of what was read. If that is too much to be read a
// second time at once, it takes back what is behind.
func (p *scrubPass) judge(ctx context.Context) ([]Unreadable, error) {
	if len(p.gaps) > 0 || p.hidden > 0 {
		held, known, err := p.holds(ctx)
		if err != nil {
			return nil, err
		}
		for _, g := range p.gaps {
			if !known {
				p.unjudged += g.to - g.from + 1
				continue
			}
			for seq := g.from; seq <= g.to && len(p.suspects) < 2*scrubSuspects; seq++ {
				if held(seq) {
					p.suspects = append(p.suspects, seq)
				}
			}
		}
	}
	slices.Sort(p.suspects)
	if len(p.suspects) > scrubSuspects {
		p.suspects = p.suspects[:scrubSuspects]
		p.at = p.suspects[scrubSuspects-1]
	}
	return p.confirm(ctx)
}

// confirm reads the suspects one by one, and returns those that the stream still holds
// and that cannot be read.
func (p *scrubPass) confirm(ctx context.Context) (bad []Unreadable, err error) {
	missing := 0
	for _, seq := range p.suspects {
		m, err := p.c.at(ctx, p.stream, seq)
		if err != nil {
			return nil, err
		}
		if m == nil {
			missing++
			bad = append(bad, Unreadable{Seq: seq, Detail: "the NATS server cannot read it: it is damaged on disk"})
		} else if a, why := p.check(m); why != nil {
			bad = append(bad, Unreadable{Seq: seq, Agent: a, Detail: why.Error(), Given: true})
		}
	}
	if missing == 0 {
		return bad, nil
	}
	held, known, err := p.holds(ctx) // it may have been purged meanwhile
	if err != nil || !known {
		return nil, err
	}
	return slices.DeleteFunc(bad, func(u Unreadable) bool { return !held(u.Seq) }), nil
}

// holds returns whether the stream holds a message by its own account, whether it can
// read it or not. That is not known where too many were deleted.
func (p *scrubPass) holds(ctx context.Context) (held func(seq uint64) bool, known bool, err error) {
	info, err := p.c.details(ctx, p.stream, streamDetails{})
	if err != nil || info.State.NumDeleted > scrubDeleted {
		return nil, false, err
	}
	if info, err = p.c.details(ctx, p.stream, streamDetails{Deleted: true}); err != nil {
		return nil, false, err
	}
	at := info.State
	at.Deleted = slices.Compact(at.Deleted) // what is hidden may be named twice
	p.hidden = 0
	if there := at.LastSeq + 1 - at.FirstSeq - uint64(len(at.Deleted)); at.Messages > there {
		p.hidden = at.Messages - there
	}
	return func(seq uint64) bool {
		_, deleted := slices.BinarySearch(at.Deleted, seq)
		return seq >= at.FirstSeq && seq <= at.LastSeq && !deleted
	}, true, nil
}

// nameNewest says whose a message is that no other follows, which is known if there is
// one of the kind, one agent whose newest message cannot be read, and no message that the
// pass has not read.
func (l *Log) nameNewest(ctx context.Context, c *conn, stream string, s *Scrub) error {
	seqs := s.unnamed()
	if len(seqs) != 1 || s.More > 0 {
		return nil
	}
	info, err := c.details(ctx, stream, streamDetails{Subjects: ">"})
	if err != nil || info.State.LastSeq != s.Last || info.Total > scrubMute {
		return err
	}
	var mute []messages.AgentID
	for subject := range info.State.Subjects {
		m, err := c.newest(ctx, stream, subject)
		if err != nil {
			return err
		}
		if a, err := l.subjects.ParseLog(subject); m == nil && err == nil {
			mute = append(mute, a)
		}
	}
	if i := slices.IndexFunc(s.Bad, func(u Unreadable) bool { return u.Seq == seqs[0] }); len(mute) == 1 {
		s.Bad[i].Agent = mute[0]
	}
	return nil
}

// end notes which of bad belonged to agents that were deleted since.
func (l *Log) end(ctx context.Context, c *conn, stream string, bad []Unreadable) error {
	for i, u := range bad {
		if u.Agent == (messages.AgentID{}) {
			continue
		}
		ended, err := l.endedSince(ctx, c, stream, u.Agent, u.Seq)
		if err != nil {
			return err
		}
		bad[i].Ended = ended
	}
	return nil
}

// endedSince reports whether an agent was deleted since a message at a sequence, and all that
// can be read of it up to there is purged.
func (l *Log) endedSince(ctx context.Context, c *conn, stream string, a messages.AgentID, seq uint64) (bool, error) {
	first, err := c.get(ctx, stream, place{Seq: 1, Next: l.subject(a, a.Partition())})
	return err == nil && first != nil && first.seq > seq && first.ends(), err
}

// ends reports whether a message is a tombstone.
func (m *stored) ends() bool { return IsTombstone(m.header) }

// streamDetails is what the leader of a stream is asked to name.
type streamDetails struct {
	Deleted  bool   `json:"deleted_details,omitempty"`
	Subjects string `json:"subjects_filter,omitempty"`
}

// detailedInfo is what it says. Deleted is ascending.
type detailedInfo struct {
	Error *jetstream.APIError `json:"error"`
	Total int                 `json:"total"` // of Subjects, of which only the first are named
	State struct {
		Messages   uint64            `json:"messages"`
		FirstSeq   uint64            `json:"first_seq"`
		LastSeq    uint64            `json:"last_seq"`
		NumDeleted int               `json:"num_deleted"`
		Deleted    []uint64          `json:"deleted"`
		Subjects   map[string]uint64 `json:"subjects"`
	} `json:"state"`
}

func (c *conn) details(ctx context.Context, stream string, ask streamDetails) (info detailedInfo, err error) {
	data, err := json.Marshal(ask)
	if err != nil {
		return detailedInfo{}, err
	}
	answer, err := c.request(ctx, &nats.Msg{Subject: "$JS.API.STREAM.INFO." + stream, Data: data})
	if err == nil {
		err = json.Unmarshal(answer.Data, &info)
	}
	if err == nil && info.Error != nil {
		err = forNow(info.Error)
	}
	if err != nil {
		return detailedInfo{}, fmt.Errorf("look up stream %s: %w", stream, err)
	}
	return info, nil
}
