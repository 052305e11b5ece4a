package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections/index"
)

var quiet = slog.New(slog.DiscardHandler)

// story appends turns of agents, each with a call that is done and one that waits.
func story(t testing.TB, log eventlog.Appender, agents, turns int, word string) {
	t.Helper()
	storyOf(t, log, "a", agents, turns, word)
}

// storyOf is a story of agents whose keys begin with a prefix.
func storyOf(t testing.TB, log eventlog.Appender, prefix string, agents, turns int, word string) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range agents {
		wg.Go(func() {
			a, tail := named(fmt.Sprintf("%s%03d", prefix, i)), eventlog.Position{}
			for j := range turns {
				turn := messages.TurnID(fmt.Sprintf("t%d", j))
				for _, events := range [][]messages.Event{
					{messages.ModelRequested{Turn: turn, Step: 1, Call: "m", Model: "a/b"}},
					{messages.ModelCompleted{Turn: turn, Step: 1, Call: "m", Usage: messages.Usage{Input: 7}, Cost: 2},
						messages.ToolRequested{Turn: turn, Call: "c", Tool: word, Arguments: `{"order":7}`}, messages.ToolStarted{Turn: turn, Call: "c", Tool: word, Attempt: 1},
						messages.ToolRequested{Turn: turn, Call: "d", Tool: word, Arguments: `{}`}, messages.ApprovalRequested{Turn: turn, Call: "d", Tool: word, Arguments: `{}`}},
					{messages.ToolCompleted{Turn: turn, Call: "c", Output: "ok"}},
				} {
					var err error
					if tail, err = log.Append(t.Context(), logtest.Entry(t, a, tail, events...)); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// indexLog is a log that an index is kept of.
type indexLog interface {
	heads
	partitionLog
}

// kept is an index that follows all partitions of a log.
type kept struct {
	*agentsIndex
	log  indexLog
	stop func()
}

// hear has an index follow all partitions of its log, as their owner does.
func hear(log indexLog, path string, logger *slog.Logger) *kept {
	v := newAgentsIndex(log, path, logger)
	var all sync.WaitGroup
	for p := range messages.Partition(messages.Partitions) {
		all.Go(func() {
			for m, err := range log.Follow(v.ctx, p) {
				if err == nil {
					v.hears(p, m)
				}
			}
		})
	}
	return &kept{v, log, func() {
		v.cancel()
		all.Wait()
		v.close()
	}}
}

func keepIndex(t testing.TB, log indexLog, path string, logger *slog.Logger) *kept {
	v := hear(log, path, logger)
	v.begin()
	t.Cleanup(v.stop)
	return v
}

// everyPartition are all of them.
func everyPartition() (all []messages.Partition) {
	for p := range messages.Partition(messages.Partitions) {
		all = append(all, p)
	}
	return all
}

// said is everything that the index says of a tenant, once it knows of all that the log holds.
func said(t testing.TB, v *kept) string {
	t.Helper()
	for p := range messages.Partition(messages.Partitions) {
		for m, err := range v.log.ReadPartition(t.Context(), p, 0) {
			if err != nil {
				break // it is read when it can be
			}
			v.committed(p, m.Seq)
		}
	}
	for range 60 { // a slow machine may take longer than a query waits
		store, ready, lacks, err := v.Index(t.Context(), everyPartition(), true)
		if err != nil {
			t.Fatal(err)
		}
		if len(lacks) == 0 && len(ready) == messages.Partitions {
			return everything(t, store)
		}
	}
	t.Fatal("the index does not catch up")
	return ""
}

func everything(t testing.TB, store *index.Store) string {
	t.Helper()
	var text strings.Builder
	add := func(row index.Row, err error) {
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(row.Line)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s\n", b)
	}
	q := index.Query{Tenant: messages.DefaultTenant}
	for row, err := range store.Effects(t.Context(), q) {
		add(row, err)
	}
	for row, err := range store.Approvals(t.Context(), q) {
		add(row, err)
	}
	for _, by := range index.By {
		for row, err := range store.Usage(t.Context(), index.UsageQuery{Tenant: messages.DefaultTenant, By: by}) {
			add(row, err)
		}
	}
	return text.String()
}

func TestViewsTellWhatTheLogHeld(t *testing.T) {
	log := memlog.New()
	v := keepIndex(t, log, filepath.Join(t.TempDir(), "not", "there", "index.db"), quiet)
	tails := make(map[messages.AgentID]eventlog.Position)
	for n := 1; n <= 30; n++ { // what was stored before it is asked is shown
		a := named(fmt.Sprintf("a%d", n%7))
		call := messages.CallID(fmt.Sprintf("c%d", n))
		var err error
		if tails[a], err = log.Append(t.Context(), logtest.Entry(t, a, tails[a], messages.ToolRequested{Turn: "t", Call: call}, messages.ToolCompleted{Turn: "t", Call: call})); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(said(t, v), `"outcome":"completed"`); got != n {
			t.Fatalf("%d calls are completed, want %d", got, n)
		}
	}
}

// The index of another log, of one that was restored, and of a file that was
// deleted or damaged are built again.
func TestViewsOfALogThatIsAnother(t *testing.T) { // A87
	path := filepath.Join(t.TempDir(), "index.db")
	build := func(log indexLog, path string) (text, warned string) {
		var words embeddedtest.Words
		v := hear(log, path, slog.New(slog.NewTextHandler(&words, nil)))
		v.begin()
		defer v.stop()
		return said(t, v), words.String()
	}
	first := memlog.New()
	story(t, first, 20, 4, "first")
	want, warned := build(first, path)
	if warned != "" || strings.Count(want, `"outcome":"completed"`) != 80 {
		t.Fatalf("%d lines, warned %s", strings.Count(want, "\n"), warned)
	}
	if got, warned := build(first, path); got != want || warned != "" {
		t.Errorf("opened again: same %v, warned %s", got == want, warned)
	}
	for name, turns := range map[string]int{"longer": 6, "shorter": 2, "empty": 0} {
		if got, _ := build(first, path); got != want {
			t.Errorf("before a %s log: another index than at first", name)
		}
		other := memlog.New()
		story(t, other, 20, turns, "other")
		fresh, _ := build(other, filepath.Join(t.TempDir(), "index.db"))
		if got, warned := build(other, path); got != fresh || !strings.Contains(warned, "is not the one") {
			t.Errorf("a %s log: same as built from scratch %v, warned %s", name, got == fresh, warned)
		}
	}
	for name, harm := range map[string]func() error{
		"deleted": func() error { return index.Remove(path) },
		"damaged": func() error { return os.WriteFile(path, []byte(strings.Repeat("no database ", 999)), 0o600) },
	} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		if got, warned := build(first, path); got != want || (warned != "") != (name == "damaged") {
			t.Errorf("%s: same %v, warned %s", name, got == want, warned)
		}
	}
}

// A query does not wait forever: what is lacking is reported. What is known of a partition that
// is this node's no more is not shown, and shown again when it is back.
func TestViewsTellTheirLag(t *testing.T) {
	log := memlog.New()
	story(t, log, 2, 1, "x")
	synctest.Test(t, func(t *testing.T) {
		v := hear(log, filepath.Join(t.TempDir(), "index.db"), quiet)
		v.begin()
		defer v.stop()
		said(t, v)
		mine := named("a000").Partition()
		end := v.partitions[mine].end
		v.committed(mine, end+2)
		began := time.Now()
		want := []messages.Uncovered{{Partition: mine, Indexed: end, End: end + 2}}
		store, ready, lacks, err := v.Index(t.Context(), everyPartition(), true)
		if err != nil || len(ready) != messages.Partitions || !slices.Equal(lacks, want) || time.Since(began) != indexWait {
			t.Fatalf("%+v are lacking after %s, %v", lacks, time.Since(began), err)
		}
		if text := everything(t, store); strings.Count(text, `"outcome":"completed"`) != 2 {
			t.Errorf("told: %s", text)
		}
		began = time.Now()
		if next, ready, lacks, err := v.Index(t.Context(), everyPartition(), false); err != nil || next != store || len(ready) != messages.Partitions || len(lacks) > 0 || time.Since(began) != 0 {
			t.Errorf("the next page, of what came meanwhile: %v, lacking %+v, after %s, %v", ready, lacks, time.Since(began), err)
		}
		places, err := v.Positions(t.Context(), []messages.Partition{mine})
		if err != nil || len(places) != 1 || places[0].Behind != 2 || places[0].Partition != mine {
			t.Errorf("places %+v, %v", places, err)
		}
		v.forgets(mine)
		if _, ready, lacks, err := v.Index(t.Context(), []messages.Partition{mine}, false); err != nil || len(ready) != 0 || len(lacks) != 1 {
			t.Errorf("of a partition that is gone: %v, lacking %v, %v", ready, lacks, err)
		}
		v.hears(mine, eventlog.Stored{Head: eventlog.Head{Agent: named("a000"), Seq: end}})
		v.hears(mine, eventlog.Stored{})
		if text := said(t, v); strings.Count(text, `"outcome":"completed"`) != 2 {
			t.Errorf("told when it is back: %s", text)
		}
	})
}

// An agent that is deleted while its partition is another node's is not shown when that is back.
func TestViewsOfAPartitionThatComesBack(t *testing.T) { // A108
	log := memlog.New()
	story(t, log, 2, 1, "x")
	synctest.Test(t, func(t *testing.T) {
		v := hear(log, filepath.Join(t.TempDir(), "index.db"), quiet)
		v.begin()
		defer v.stop()
		said(t, v)
		gone := named("a000")
		p := gone.Partition()
		v.mu.Lock() // it receives no tombstone
		v.partitions[p].heard = false
		v.mu.Unlock()
		tail, err := log.Head(t.Context(), gone)
		if err != nil {
			t.Fatal(err)
		}
		tail, err = log.Append(t.Context(), logtest.Entry(t, gone, tail, messages.AgentDeleted{}))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		v.forgets(p)
		store := v.store
		if before := everything(t, store); !strings.Contains(before, gone.String()) {
			t.Fatalf("the tombstone was read: %s", before)
		}
		v.hears(p, eventlog.Stored{Head: eventlog.Head{Agent: gone, Seq: tail.Seq}})
		v.hears(p, eventlog.Stored{})
		if _, ready, _, err := v.Index(t.Context(), []messages.Partition{p}, false); err != nil || len(ready) != 0 {
			t.Errorf("it answers before the tombstone is read: %v, %v", ready, err)
		}
		if text := said(t, v); strings.Contains(text, gone.String()) {
			t.Errorf("a deleted agent is shown: %s", text)
		}
	})
}

// held is a log whose readers wait before its newest message.
type held struct {
	*memlog.Log
	until chan struct{}
}

func (l held) ReadPartition(ctx context.Context, p messages.Partition, after uint64) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		end, _ := l.ShardEnd(ctx, int(p))
		for m, err := range l.Log.ReadPartition(ctx, p, after) {
			if m.Seq == end {
				select {
				case <-l.until:
				case <-ctx.Done():
				}
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// A partition is not shown before all was read that it held when it came.
func TestViewsOfAPartitionThatIsRead(t *testing.T) { // A108
	log := memlog.New()
	story(t, log, 1, 1, "x")
	synctest.Test(t, func(t *testing.T) {
		at := held{log, make(chan struct{})}
		v := hear(at, "", quiet)
		v.begin()
		defer v.stop()
		synctest.Wait()
		<-time.After(3 * indexGather) // what was given before is committed
		p := named("a000").Partition()
		if _, ready, lacks, err := v.Index(t.Context(), []messages.Partition{p}, false); err != nil || len(ready) != 0 || len(lacks) != 1 || lacks[0].Indexed == 0 {
			t.Errorf("it answers for %v, lacking %+v, %v", ready, lacks, err)
		}
		close(at.until)
		if text := said(t, v); strings.Count(text, `"outcome":"completed"`) != 1 {
			t.Errorf("told: %s", text)
		}
	})
}

// Where the heads of a partition are read again, since the log was replaced, it is not shown before
// the new log was read to its end.
func TestViewsOfALogThatIsReplaced(t *testing.T) { // A108
	log, other := memlog.New(), memlog.New()
	story(t, log, 1, 2, "first")
	story(t, other, 1, 1, "other")
	synctest.Test(t, func(t *testing.T) {
		v := hear(log, "", quiet)
		v.begin()
		defer v.stop()
		said(t, v)
		a, at := named("a000"), held{other, make(chan struct{})}
		v.agentsIndex.log = at
		tail, err := other.Head(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		v.forgets(a.Partition())
		v.hears(a.Partition(), eventlog.Stored{Head: eventlog.Head{Agent: a, Seq: tail.Seq}})
		v.hears(a.Partition(), eventlog.Stored{})
		_, ready, lacks, err := v.Index(t.Context(), []messages.Partition{a.Partition()}, true)
		if err != nil || len(ready) != 0 || len(lacks) != 1 || lacks[0].End != tail.Seq {
			t.Errorf("it answers for %v, lacking %+v, %v", ready, lacks, err)
		}
		close(at.until)
		store, ready, _, err := v.Index(t.Context(), []messages.Partition{a.Partition()}, true)
		if err != nil || len(ready) != 1 {
			t.Fatalf("it answers for %v, %v", ready, err)
		}
		if text := everything(t, store); strings.Contains(text, "first") || strings.Count(text, `"outcome":"completed"`) != 1 {
			t.Errorf("told: %s", text)
		}
	})
}

// unreliable are streams that cannot be relied on.
type unreliable struct{}

func (unreliable) Identity(int) string { return "other" }
func (unreliable) Witness(int, uint64) {}
func (unreliable) Witnessed()          {}
func (unreliable) Relied(int) error {
	return &natslog.LossError{Stream: "S", Detail: "its files are damaged"}
}

// A partition whose stream has lost messages is named with what it has lost.
func TestViewsOfADamagedStream(t *testing.T) { // A108
	log, path := memlog.New(), filepath.Join(t.TempDir(), "index.db")
	story(t, log, 1, 1, "x")
	before := hear(log, path, quiet)
	before.begin()
	said(t, before)
	before.stop()
	synctest.Test(t, func(t *testing.T) {
		v := hear(memlog.New(), path, quiet)
		v.streams = unreliable{}
		v.begin()
		defer v.stop()
		p := named("a000").Partition()
		_, ready, lacks, err := v.Index(t.Context(), []messages.Partition{p}, true)
		if err != nil || len(ready) != 0 || len(lacks) != 1 || !strings.HasPrefix(lacks[0].Reason, "cannot be read: ") || !strings.HasSuffix(lacks[0].Reason, "its files are damaged") {
			t.Errorf("it answers for %v, lacking %+v, %v", ready, lacks, err)
		}
	})
}

// unread is a log that must not be read.
type unread struct {
	testing.TB
	eventlog.Reader
}

func (u unread) ReadPartition(_ context.Context, p messages.Partition, after uint64) iter.Seq2[eventlog.Stored, error] {
	u.Errorf("partition %v is read behind %d", p, after)
	return func(func(eventlog.Stored, error) bool) {}
}

// What comes faster than it gathers, or while a query waits, is folded at once, and not read from
// the log, also while the index rests.
func TestIndexOfManyCommits(t *testing.T) { // A107
	synctest.Test(t, func(t *testing.T) {
		v := newAgentsIndex(unread{TB: t}, "", quiet)
		v.begin()
		defer v.close()
		a, seq := named("a000"), uint64(0)
		commit := func(m eventlog.Stored) {
			seq++
			m.Agent, m.Seq = a, seq
			v.hears(a.Partition(), m)
		}
		own := eventlog.Stored{Frame: func() (*messages.Frame, error) { return nil, messages.ErrLocked }}
		slow := eventlog.Stored{Head: eventlog.Head{Foreign: true}, Frame: func() (*messages.Frame, error) {
			<-time.After(indexGather)
			return own.Frame()
		}}
		v.hears(a.Partition(), eventlog.Stored{})
		synctest.Wait() // what comes before the file is open is read from the log
		commit(slow)
		<-time.After(5 * indexGather / 2) // it has folded that, and rests
		began := time.Now()
		for range 2 * indexQueue / indexBatch {
			for range indexBatch {
				commit(own)
			}
			synctest.Wait()
		}
		v.committed(a.Partition(), seq+1)
		go func() {
			synctest.Wait()
			commit(own)
		}()
		if _, _, lacks, err := v.Index(t.Context(), []messages.Partition{a.Partition()}, true); err != nil || len(lacks) > 0 || time.Since(began) != 0 {
			t.Errorf("after %v it lacks %+v, %v", time.Since(began), lacks, err)
		}
	})
}

// broken is a log whose readers fail after every third message, some times.
type broken struct {
	*memlog.Log
	left *atomic.Int32
}

func (l broken) ReadPartition(ctx context.Context, p messages.Partition, after uint64) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		given := 0
		for m, err := range l.Log.ReadPartition(ctx, p, after) {
			if given++; given > 3 && l.left.Add(-1) >= 0 {
				yield(eventlog.Stored{}, errors.New("the connection was lost"))
				return
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// A reader that fails continues where it was.
func TestViewsOfALogThatCannotBeReadAtTimes(t *testing.T) { // A30
	log := memlog.New()
	story(t, log, 5, 3, "x")
	synctest.Test(t, func(t *testing.T) {
		var words embeddedtest.Words
		at := broken{log, new(atomic.Int32)}
		v := hear(at, filepath.Join(t.TempDir(), "index.db"), slog.New(slog.NewTextHandler(&words, nil)))
		at.left.Store(6)
		v.begin()
		defer v.stop()
		<-time.After(time.Minute)
		if got := strings.Count(said(t, v), `"outcome":"completed"`); got != 15 {
			t.Errorf("%d calls are completed", got)
		}
		if text := words.String(); strings.Count(text, "the connection was lost") != 6 || strings.Contains(text, "opened again") || strings.Contains(text, "is not the one") {
			t.Errorf("it is said: %s", text)
		}
	})
}

// silent is a bucket of keys that does not answer for some time.
type silent struct {
	encrypted.Bucket
	left *atomic.Int32
}

func (b silent) Get(ctx context.Context, name string) ([]byte, uint64, error) {
	if b.left.Add(-1) >= 0 {
		return nil, 0, fmt.Errorf("read key %s: %w: waited 2s", name, eventlog.ErrUnavailable)
	}
	return b.Bucket.Get(ctx, name)
}

// encryptedStory is a log with a story that was written under the keys of a bucket.
func encryptedStory(t *testing.T, bucket encrypted.Bucket) *memlog.Log {
	t.Helper()
	log := memlog.New()
	story(t, encrypted.New(log.Store(), log, keysIn(t, bucket)), 9, 3, "x")
	return log
}

func keysIn(t *testing.T, b encrypted.Bucket) *encrypted.Keys {
	t.Helper()
	keys, err := encrypted.Open(t.Context(), b, encrypted.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Frames whose keys cannot be read now are waited for; those whose key is gone are
// left out.
func TestViewsWaitForKeys(t *testing.T) { // A30, A108
	bucket, left := &encrypted.Memory{}, new(atomic.Int32)
	log, lost := encryptedStory(t, bucket), named("a004")
	if had, err := keysIn(t, bucket).Shred(t.Context(), lost, func(context.Context) (bool, error) { return true, nil }); !had || err != nil {
		t.Fatal(had, err)
	}
	reader := encrypted.New(log.Store(), log, keysIn(t, silent{bucket, left}))
	left.Store(5)
	synctest.Test(t, func(t *testing.T) {
		var words embeddedtest.Words
		v := hear(reader, "", slog.New(slog.NewTextHandler(&words, nil)))
		v.begin()
		defer v.stop()
		<-time.After(time.Minute)
		if got := strings.Count(said(t, v), `"outcome":"completed"`); got != 8*3 {
			t.Errorf("%d calls are completed", got)
		}
		if n := v.Unreadable(messages.DefaultTenant); n != 9 {
			t.Errorf("%d frames are left out", n)
		}
		if text := words.String(); strings.Count(text, "waits for a frame") != 1 || strings.Count(text, "leaves it out") != 1 || !strings.Contains(text, lost.String()) || strings.Contains(text, "opened again") {
			t.Errorf("it is said: %s", text)
		}
	})
}

// The index does not wait for keys that this process cannot open, or does not have.
func TestViewsWithoutTheKeys(t *testing.T) { // A108
	for _, locked := range []bool{false, true} {
		bucket := &encrypted.Memory{}
		log, keys := encryptedStory(t, bucket), (*encrypted.Keys)(nil)
		if locked {
			keys = keysIn(t, damagedKeys(t, bucket))
		}
		synctest.Test(t, func(t *testing.T) {
			v := hear(encrypted.New(log.Store(), log, keys), "", quiet)
			v.begin()
			defer v.stop()
			if text := said(t, v); strings.Contains(text, "outcome") || v.Unreadable(messages.DefaultTenant) != 9*9 {
				t.Errorf("with keys %v, %d frames are left out of: %s", locked, v.Unreadable(messages.DefaultTenant), text)
			}
		})
	}
}

// damagedKeys is a bucket that has a value for each agent, and none is a key.
func damagedKeys(t *testing.T, whole encrypted.Bucket) encrypted.Bucket {
	t.Helper()
	bucket := &encrypted.Memory{}
	keysIn(t, bucket)
	names, err := whole.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := bucket.Put(t.Context(), name, []byte("no key"), 0); err != nil && !errors.Is(err, encrypted.ErrChanged) {
			t.Fatal(err)
		}
	}
	return bucket
}

// Of two nodes with one folder, one keeps its index there and the other says so, until
// the first is gone.
func TestViewsOfTwoNodesInOneFolder(t *testing.T) { // A87
	log := memlog.New()
	story(t, log, 20, 4, "x")
	path := filepath.Join(t.TempDir(), "views", "index.db")
	synctest.Test(t, func(t *testing.T) {
		var words embeddedtest.Words
		logger := slog.New(slog.NewTextHandler(&words, nil))
		first, second := hear(log, path, logger), hear(log, path, logger)
		first.begin()
		second.begin()
		defer func() { second.stop() }()
		_, _, _, err := first.Index(t.Context(), everyPartition(), true)
		if err != nil { // the other was faster
			first, second = second, first
		}
		want := said(t, first)
		if _, _, _, err := second.Index(t.Context(), everyPartition(), true); err == nil || !strings.Contains(err.Error(), "give each node a folder of its own") {
			t.Errorf("the other says %v", err)
		}
		first.stop()
		<-time.After(time.Minute)
		if got := said(t, second); got != want || strings.Count(got, `"outcome":"completed"`) != 80 {
			t.Errorf("the other then says %s", got)
		}
		if strings.Contains(words.String(), "thrown away") {
			t.Errorf("it is said: %s", words.String())
		}
	})
}

// An index that takes frames from its node's own commits is the same as one that is built of
// the log alone: beside another node that writes, where more comes than is kept, and if it is
// closed in the middle.
func TestIndexOfOwnCommits(t *testing.T) { // A87, A107
	t.Parallel()
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), DontListen: true, Sync: embedded.SyncRelaxed, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	open := func() *natslog.Log {
		nc, err := srv.Connect()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		log, err := natslog.Open(t.Context(), natslog.Config{Conns: []*nats.Conn{nc}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		return log
	}
	log, other, path := open(), open(), filepath.Join(t.TempDir(), "index.db")
	var words embeddedtest.Words
	logger := slog.New(slog.NewTextHandler(&words, nil))
	v := hear(log, path, logger)
	v.begin()
	said(t, v)
	story(t, log, 20, 2, "x")
	said(t, v)
	var both sync.WaitGroup
	for _, s := range []struct {
		log    *natslog.Log
		prefix string
	}{{log, "b"}, {other, "c"}} {
		both.Go(func() { storyOf(t, s.log, s.prefix, 20, 3, "y") })
	}
	both.Wait()
	said(t, v)
	nc, err := srv.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	strange := nats.NewMsg(messages.Subjects{}.Log(named("b000")))
	strange.Header.Set("Reprise-Frame", "?") // a frame, as it seems
	if _, err := nc.RequestMsg(strange, time.Minute); err != nil {
		t.Fatal(err)
	}
	said(t, v)
	if left := v.Unreadable(named("b000").Tenant); left != 1 {
		t.Errorf("%d frames that cannot be read are left out", left)
	}
	storyOf(t, log, "d", 8, 40, strings.Repeat("z", 10<<10))
	v.stop()
	storyOf(t, log, "e", 20, 2, "x")
	v = keepIndex(t, log, path, logger)
	storyOf(t, log, "f", 20, 2, "x")
	got, want := said(t, v), said(t, keepIndex(t, open(), "", quiet))
	if got != want || strings.Count(got, `"outcome":"completed"`) != 20*2+2*20*3+8*40+2*20*2 {
		t.Errorf("the index of own commits has %d lines, the one of the log %d", strings.Count(got, "\n"), strings.Count(want, "\n"))
	}
	if text := words.String(); strings.Count(text, "level=WARN") != 1 {
		t.Errorf("it is said: %s", text)
	}
}

// The environment of a process that keeps an index until it is killed.
const (
	viewsURL  = "REPRISE_TEST_VIEWS_URL"
	viewsFile = "REPRISE_TEST_VIEWS_FILE"
)

// indexMore is how many messages a process that keeps an index until it is killed is given:
// it waits for more then, however late it is killed.
const indexMore = 100

// portion is a log of which a process is given only so much; given counts it.
type portion struct {
	*natslog.Log
	left  chan struct{}
	given *atomic.Int64
}

// ReadPartition waits forever where nothing is left. The first message behind a place it yields
// all the same: that is where the index is already.
func (l portion) ReadPartition(ctx context.Context, p messages.Partition, after uint64) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		free := after > 0
		for m, err := range l.Log.ReadPartition(ctx, p, after) {
			if err == nil && !free {
				select {
				case <-l.left:
					l.given.Add(1)
				case <-ctx.Done():
					return
				}
			}
			if free = false; !yield(m, err) {
				return
			}
		}
	}
}

// TestKeepViewsUntilKilled is the process that TestViewsOfAKilledProcess kills. It says
// how much it has been given.
func TestKeepViewsUntilKilled(t *testing.T) {
	if os.Getenv(viewsURL) == "" {
		t.Skip("it is run by another test, as a process of its own")
	}
	log := portion{openLog(t, os.Getenv(viewsURL)), make(chan struct{}, indexMore), new(atomic.Int64)}
	for range indexMore {
		log.left <- struct{}{}
	}
	v := hear(log, os.Getenv(viewsFile), quiet)
	v.most = 20
	v.begin()
	for {
		v.mu.Lock()
		moved := v.moved
		v.mu.Unlock()
		fmt.Printf("at %d\n", log.given.Load())
		<-moved
	}
}

func openLog(t testing.TB, url string) *natslog.Log {
	t.Helper()
	nc, err := natslog.Connect(url, nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	log, err := natslog.Open(t.Context(), natslog.Config{Conns: []*nats.Conn{nc}, Subjects: messages.Subjects{Root: messages.DefaultRoot}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// A process that is killed while it builds, again and again, leaves a file that
// counts everything once.
func TestViewsOfAKilledProcess(t *testing.T) { // A87
	embeddedtest.Long(t, "processes")
	t.Parallel()
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	log := openLog(t, srv.ClientURL())
	story(t, log, 40, 5, "x") // 600 messages
	path := filepath.Join(t.TempDir(), "index.db")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var places []uint64
	for range 4 {
		places = append(places, killAfter(t, self, srv.ClientURL(), path))
	}
	whole := keepIndex(t, log, filepath.Join(t.TempDir(), "index.db"), quiet)
	want := said(t, whole)
	if got := said(t, keepIndex(t, log, path, quiet)); got != want || strings.Count(got, `"outcome":"completed"`) != 200 {
		t.Errorf("killed at %v, the index differs from one built in one go: %d and %d lines", places, strings.Count(got, "\n"), strings.Count(want, "\n"))
	}
}

// killAfter starts a process that keeps an index and kills it when it has been given two
// transactions; it returns how much it was given.
func killAfter(t *testing.T, self, url, path string) (at uint64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestKeepViewsUntilKilled$", "-test.timeout=3m")
	cmd.Env = append(os.Environ(), viewsURL+"="+url, viewsFile+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := ""
	lines := bufio.NewScanner(out)
	for at < 40 && lines.Scan() {
		said += lines.Text() + "\n"
		if text, ok := strings.CutPrefix(lines.Text(), "at "); ok {
			at, _ = strconv.ParseUint(text, 10, 64)
		}
	}
	_ = cmd.Process.Kill() // SIGKILL
	_ = cmd.Wait()         // it was killed
	if at < 40 {
		t.Fatalf("it came to %d and no further; it said\n%s", at, said)
	}
	return at
}
