package natslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/messages"
)

// The server drops what it cannot read without a word: it cuts a block at the
// first bad record when it rebuilds its index, keeps the stream's last sequence
// when an inner block is cut or missing, and reuses the sequences of a lost end for
// new messages. So how far each log stream went is recorded outside of it, in the
// bucket KV_<root>_marks:
//
//	log.<n>   a base: what was true of stream n when its record began
//	p.<nn>    a mark: what partition nn has stored and purged since
//
// A stream is whole if its last sequence is not below what its base and marks
// name, and as many messages are missing below it as they say were purged; see
// [Log.Check].

// base is the beginning of a stream's record. A new one is made with the stream,
// by a restore, and by a person who accepts a loss; marks of another are void.
type base struct {
	ID string `json:"id"`
	// Stream is the identity of the stream that the record is about.
	Stream string `json:"stream"`
	// Last is the stream's last sequence, Removed how many messages up to it were
	// missing, and Lost how many the server itself called lost.
	Last    uint64 `json:"last"`
	Removed uint64 `json:"removed,omitempty"`
	// Returned is how many messages are there again that were purged: a server that is
	// killed may not keep what a purge did.
	Returned uint64    `json:"returned,omitempty"`
	Lost     int       `json:"lost,omitempty"`
	At       time.Time `json:"at"`
	// Quarantined is what was taken out of the stream's files; Removed counts it.
	Quarantined []Quarantined `json:"quarantined,omitempty"`
	// Accepted is set if a person accepted that messages were lost before.
	Accepted *Acceptance `json:"accepted,omitempty"`
}

// Acceptance records who accepted a loss.
type Acceptance struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Loss is what was accepted.
	Loss string `json:"loss"`
}

// mark is what is known of a partition since the base was made. Only the
// partition's owner writes it.
type mark struct {
	Base string `json:"base"`
	// Last is the sequence of a frame that was acknowledged.
	Last uint64 `json:"last,omitempty"`
	// Purged is how many messages purges have removed.
	Purged uint64 `json:"purged,omitempty"`
	// Purge is a purge under way, or one whose outcome is unknown. Nil: none.
	Purge *purging `json:"purge,omitempty"`
}

// purging is a purge before its outcome is known.
type purging struct {
	Subject string `json:"subject"`
	Before  uint64 `json:"before"`
	// Messages is how many there are on Subject below Before.
	Messages uint64 `json:"messages"`
}

// marks is what a Log knows of its streams' records. Safe for concurrent use.
type marks struct {
	bases [LogStreams]atomic.Pointer[base]
	// acked is the highest sequence that an append of this Log was acknowledged with.
	acked [messages.Partitions]atomic.Uint64
	marks [messages.Partitions]marker
}

// marker is the mark of a partition as this Log read or wrote it last.
type marker struct {
	mu   sync.Mutex
	read bool
	rev  uint64 // 0: there is none
	mark mark
}

// MarksOf returns the name of the stream behind the bucket of marks. A backup leaves
// it out, and a restore makes it again from what it put back.
func MarksOf(s messages.Subjects) string { return "KV_" + root(s) + "_marks" }

func marksStream(s messages.Subjects, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: MarksOf(s), Description: "reprise: how far the log went, recorded outside of it", Subjects: []string{markSubject(s, ">")},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardOld,
		MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: 1, MaxMsgSize: -1, MaxConsumers: -1,
		Replicas: max(1, replicas), Duplicates: shortest,
	}
}

func markSubject(s messages.Subjects, key string) string { return "$KV." + root(s) + "_marks." + key }

func baseKey(shard int) string            { return "log." + strconv.Itoa(shard) }
func markKey(p messages.Partition) string { return fmt.Sprintf("p.%02d", int(p)) }

// partitionsOf returns the partitions of a shard, from first up to and without end.
func partitionsOf(shard int) (first, end int) { return shard * perStream, (shard + 1) * perStream }

// getMark reads a key of the bucket into v. rev is 0 if there is none, or none
// that can be read.
func (l *Log) getMark(ctx context.Context, key string, v any) (rev uint64, err error) {
	m, err := l.conns[0].newest(ctx, MarksOf(l.subjects), markSubject(l.subjects, key))
	if err != nil || m == nil {
		return 0, err
	}
	if err := json.Unmarshal(m.data, v); err != nil {
		return 0, fmt.Errorf("key %s of stream %s: %w: it was not written by reprise", key, MarksOf(l.subjects), err)
	}
	return m.seq, nil
}

// putMark writes a key of the bucket if its revision is still rev.
func (l *Log) putMark(ctx context.Context, key string, v any, rev uint64) (uint64, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	return l.conns[0].publish(ctx, &nats.Msg{Subject: markSubject(l.subjects, key), Data: data, Header: nats.Header{
		headerStream: {MarksOf(l.subjects)},
		headerFence:  {strconv.FormatUint(rev, 10)},
	}})
}

// baseOf returns the base of a stream's record, and begins the record if there is
// none.
func (l *Log) baseOf(ctx context.Context, shard int) (*base, error) {
	if b := l.marks.bases[shard].Load(); b != nil {
		return b, nil
	}
	loss := new(LossError)
	if err := l.Check(ctx, shard, false); err != nil && !errors.As(err, &loss) {
		return nil, err
	}
	b := l.marks.bases[shard].Load()
	if b == nil {
		return nil, fmt.Errorf("stream %s has lost messages, and its record cannot be written", l.names.log(shard))
	}
	return b, nil
}

// newBase describes a stream as it is now.
func newBase(info streamInfo) *base {
	return &base{ID: ulid.Make().String(), Stream: info.identity(), Last: info.State.LastSeq, Removed: info.removed(), Lost: info.lost(), At: time.Now().UTC()}
}

// begin writes the first base of a stream. If another node has been first it
// returns that one's.
func (l *Log) begin(ctx context.Context, shard int, info streamInfo) (*base, error) {
	b := newBase(info)
	_, err := l.putMark(ctx, baseKey(shard), b, 0)
	if conflicting(err) {
		b = new(base)
		rev, err := l.getMark(ctx, baseKey(shard), b)
		if err == nil && rev == 0 {
			err = fmt.Errorf("key %s of stream %s cannot be read and cannot be written: purge it with the nats CLI", baseKey(shard), MarksOf(l.subjects))
		}
		return b, err
	}
	if err == nil && info.State.LastSeq > 0 {
		l.log.Info("how far a stream of the log went was not on record; the record begins with what is there now", "stream", l.names.log(shard), "sequence", info.State.LastSeq)
	}
	return b, err
}

// Acked returns the highest sequence that an append to the partition was
// acknowledged with in this process. Zero: none was.
func (l *Log) Acked(p messages.Partition) uint64 { return l.marks.acked[p].Load() }

func (l *Log) ack(p messages.Partition, seq uint64) {
	for a := &l.marks.acked[p]; ; {
		if was := a.Load(); seq <= was || a.CompareAndSwap(was, seq) {
			return
		}
	}
}

// Witness takes in that a message with a sequence was read from a stream of the log. It
// reports whether that is more than was known.
func (l *Log) Witness(shard int, seq uint64) bool {
	first, end := partitionsOf(shard)
	known := uint64(0)
	if b := l.marks.bases[shard].Load(); b != nil {
		known = b.Last
	}
	for p := first; p < end; p++ {
		known = max(known, l.Acked(messages.Partition(p)), l.Marked(messages.Partition(p)))
	}
	if seq > known {
		l.ack(messages.Partition(first), seq)
	}
	return seq > known
}

// Identity returns what distinguishes a stream of the log from others of the same name, as
// of the last Check; empty if it was never checked. It changes when a loss is accepted.
func (l *Log) Identity(shard int) string {
	b := l.marks.bases[shard].Load()
	switch {
	case b == nil:
		return ""
	case b.Accepted != nil: // what was seen before is not to be found any more
		return b.Stream + " " + b.ID
	}
	return b.Stream
}

// Position is how far a partition was stored.
type Position struct {
	// Last is a sequence that was acknowledged. Zero: none was.
	Last uint64
	// Base is the record that it belongs to. What was known under another one is void.
	Base string
}

// Position returns how far a partition was stored, as far as this process knows.
func (l *Log) Position(p messages.Partition) Position {
	bases := &l.marks.bases[Shard(p)]
	b, last := bases.Load(), l.Acked(p)
	if b == nil || b.ID != bases.Load().ID {
		return Position{}
	}
	return Position{last, b.ID}
}

// Mark records a position outside the stream. A mark never goes back, and a position of
// another record changes nothing.
func (l *Log) Mark(ctx context.Context, p messages.Partition, at Position) error {
	_, err := l.changeMark(ctx, p, at.Base, func(m *mark) bool {
		if at.Last <= m.Last {
			return false
		}
		m.Last = at.Last
		return true
	})
	if err != nil {
		return fmt.Errorf("record that partition %v is stored up to sequence %d: %w", p, at.Last, err)
	}
	return nil
}

// Marked returns the sequence that is recorded of a partition, as far as this process
// knows.
func (l *Log) Marked(p messages.Partition) uint64 {
	k, b := &l.marks.marks[p], l.marks.bases[Shard(p)].Load()
	k.mu.Lock()
	defer k.mu.Unlock()
	if b == nil || k.mark.Base != b.ID { // what an older record says is void
		return 0
	}
	return k.mark.Last
}

// changeMark writes what change makes of a partition's mark, and returns it. change
// reports whether there is anything to write; it may be called several times. Under
// another base than the one given, if one is, it is not called.
func (l *Log) changeMark(ctx context.Context, p messages.Partition, under string, change func(*mark) bool) (mark, error) {
	b, err := l.baseOf(ctx, Shard(p))
	if err != nil || under != "" && under != b.ID {
		return mark{}, err
	}
	k := &l.marks.marks[p]
	k.mu.Lock()
	defer k.mu.Unlock()
	for range 3 {
		if err = k.load(ctx, l, p); err != nil {
			return mark{}, err
		}
		next := k.mark
		if next.Base != b.ID {
			next = mark{Base: b.ID}
		}
		if !change(&next) {
			return next, nil
		}
		var rev uint64
		if rev, err = l.putMark(ctx, markKey(p), next, k.rev); err == nil {
			k.rev, k.mark = rev, next
			return next, nil
		}
		k.read = false // another owner has written, or the outcome is unknown
		if !conflicting(err) {
			break
		}
	}
	return mark{}, err
}

// forget has the mark read again.
func (k *marker) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read = false
}

// load reads the mark unless it is known. k.mu is held.
func (k *marker) load(ctx context.Context, l *Log, p messages.Partition) error {
	if k.read {
		return nil
	}
	var m mark
	rev, err := l.getMark(ctx, markKey(p), &m)
	if err != nil {
		return err
	}
	k.read, k.rev, k.mark = true, rev, m
	return nil
}

// streamInfo is what the leader of a stream says of it.
type streamInfo struct {
	Error   *jetstream.APIError `json:"error"`
	Created time.Time           `json:"created"`
	Config  struct {
		Metadata map[string]string `json:"metadata"`
	} `json:"config"`
	State struct {
		Messages uint64 `json:"messages"`
		LastSeq  uint64 `json:"last_seq"`
		Lost     *struct {
			Messages []uint64 `json:"msgs"`
		} `json:"lost"`
	} `json:"state"`
	Cluster *struct {
		Leader   string            `json:"leader"`
		Replicas []json.RawMessage `json:"replicas"`
	} `json:"cluster"`
}

// metadataGeneration is the metadata that distinguishes a restored stream from the one
// that it was copied from, whatever the server makes of the time of its creation.
const metadataGeneration = "reprise-generation"

// Generation returns the metadata of a stream of the log that is restored.
func Generation() (name, value string) { return metadataGeneration, ulid.Make().String() }

// identity distinguishes the stream from others of the same name.
func (i streamInfo) identity() string {
	return strings.TrimSpace(i.Created.UTC().Format(time.RFC3339Nano) + " " + i.Config.Metadata[metadataGeneration])
}

// removed returns how many messages up to the last sequence are not there. A log
// stream has neither limits nor an age, so only purges remove them.
func (i streamInfo) removed() uint64 { return i.State.LastSeq - min(i.State.LastSeq, i.State.Messages) }

func (i streamInfo) lost() int {
	if i.State.Lost == nil {
		return 0
	}
	return len(i.State.Lost.Messages)
}

// replicated reports whether the stream has several copies, so that an answer may
// be that of a leader which has been deposed.
func (i streamInfo) replicated() bool { return i.Cluster != nil && len(i.Cluster.Replicas) > 0 }

func (c *conn) info(ctx context.Context, stream string) (info streamInfo, err error) {
	answer, err := c.request(ctx, &nats.Msg{Subject: "$JS.API.STREAM.INFO." + stream})
	if err == nil {
		err = json.Unmarshal(answer.Data, &info)
	}
	if err == nil && info.Error != nil {
		err = forNow(info.Error)
	}
	if err != nil {
		return streamInfo{}, fmt.Errorf("look up stream %s: %w", stream, err)
	}
	return info, nil
}
