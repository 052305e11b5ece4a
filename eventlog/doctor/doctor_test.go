package doctor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
)

// grow appends n frames of one event.
func grow(t *testing.T, l *memlog.Log, a messages.AgentID, tail eventlog.Position, n int) eventlog.Position {
	t.Helper()
	for range n {
		tail = append1(t, l, logtest.Entry(t, a, tail))
	}
	return tail
}

func append1(t *testing.T, l *memlog.Log, e eventlog.Entry) eventlog.Position {
	t.Helper()
	tail, err := l.Append(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return tail
}

// named reads the payloads off the reasons of a test's events.
func named(f *messages.Frame) (all []messages.Blob, readable bool) {
	for _, ev := range f.Events {
		var b messages.Blob
		noop, _ := ev.(messages.CommandNoop)
		if n, _ := fmt.Sscanf(noop.Reason, "names %s %d", &b.SHA256, &b.Size); n == 2 {
			all = append(all, b)
		}
		if noop.Reason == "sealed" {
			return nil, false
		}
	}
	return all, true
}

func naming(b messages.Blob) messages.Event {
	return messages.CommandNoop{Command: "abort", Reason: fmt.Sprintf("names %s %d", b.SHA256, b.Size)}
}

// examined examines every shard of the log.
func examined(t *testing.T, cfg doctor.Config, o doctor.Options) (all []doctor.Finding, sum doctor.Counts) {
	t.Helper()
	d := doctor.New(cfg)
	for shard := range d.Shards() {
		counts, err := d.Shard(t.Context(), shard, o, func(f doctor.Finding) { all = append(all, f) }, nil)
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(counts)
	}
	return all, sum
}

// torn is a log of which the older frames were read before they were purged, and
// the newer ones were not.
type torn struct {
	*memlog.Log
	agent messages.AgentID
}

// ReadShard leaves out what was purged meanwhile.
func (l torn) ReadShard(ctx context.Context, shard int, after uint64) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		for m, err := range l.Log.ReadShard(ctx, shard, after) {
			purged := err == nil && m.Agent == l.agent && m.First > 3 && !slices.Contains(m.Types, messages.AgentDeleted{}.EventType())
			if !purged && !yield(m, err) {
				return
			}
		}
	}
}

// An agent that is deleted while it is examined is not damaged.
func TestDeletedWhileExamined(t *testing.T) { // A29, A108
	l, a := memlog.New(), logtest.Agent("ada")
	tail := grow(t, l, a, eventlog.Position{}, 6)
	append1(t, l, logtest.Entry(t, a, tail, messages.AgentDeleted{}))
	if all, sum := examined(t, doctor.Config{Log: torn{l, a}}, doctor.Options{}); len(all) != 0 || sum.Frames != 4 {
		t.Errorf("%+v %+v", all, sum)
	}
}

func TestDamageIsFound(t *testing.T) { // A29
	for name, spoil := range map[string]func(eventlog.Entry) eventlog.Entry{
		"a flipped bit": func(e eventlog.Entry) eventlog.Entry {
			e.Bytes = bytes.Clone(e.Bytes)
			e.Bytes[len(e.Bytes)/2] ^= 1
			return e
		},
		"a gap": func(e eventlog.Entry) eventlog.Entry {
			e.Frame.First++
			return logtest.Encode(t, e)
		},
		"a broken chain": func(e eventlog.Entry) eventlog.Entry {
			e.Frame.PrevDigest = messages.DigestOf([]byte("another"))
			return logtest.Encode(t, e)
		},
		"an older epoch": func(e eventlog.Entry) eventlog.Entry {
			e.Frame.Epoch--
			return logtest.Encode(t, e)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := memlog.New()
			agents := logtest.Neighbours(3)
			ill := agents[0]
			tail := grow(t, l, ill, eventlog.Position{Epoch: 3}, 2)
			seq := l.Inject(spoil(logtest.Entry(t, ill, tail)), false)
			l.Inject(logtest.Entry(t, ill, tail), false) // what follows is not reported as well
			grow(t, l, agents[1], eventlog.Position{}, 4)
			strange := l.Inject(eventlog.Entry{Agent: agents[2], Bytes: []byte("who am I")}, true)
			grow(t, l, agents[2], eventlog.Position{Seq: strange}, 1)

			all, sum := examined(t, doctor.Config{Log: l}, doctor.Options{})
			if len(all) != 2 || sum.Problems != 1 || sum.Foreign != 1 || sum.Agents != 3 {
				t.Fatalf("%+v %+v", all, sum)
			}
			i := slices.IndexFunc(all, func(f doctor.Finding) bool { return f.Check == "log" })
			f, foreign := all[i], all[1-i]
			if f.Agent != ill || f.Event != 3 || f.Seq != seq || f.Status != doctor.Fail || f.Remedy == "" || !strings.HasPrefix(f.Stream, "shard ") {
				t.Errorf("%+v", f)
			}
			if foreign.Check != "foreign" || foreign.Agent != agents[2] || foreign.Seq != strange || foreign.Status != doctor.Warn {
				t.Errorf("%+v", foreign)
			}
			var one []doctor.Finding
			if _, err := doctor.New(doctor.Config{Log: l}).Agent(t.Context(), ill, doctor.Options{}, func(f doctor.Finding) { one = append(one, f) }); err != nil || len(one) != 1 || one[0].Event != 3 || one[0].Seq != seq {
				t.Errorf("of the agent alone: %+v, %v", one, err)
			}
		})
	}
}

func TestSoundLog(t *testing.T) {
	l := memlog.New()
	agents := logtest.Neighbours(3)
	tail := grow(t, l, agents[0], eventlog.Position{}, 5)
	grow(t, l, agents[1], eventlog.Position{}, 5)
	tail = append1(t, l, logtest.Entry(t, agents[0], tail, messages.CommandNoop{Command: "abort"}, messages.CommandNoop{Command: "clear"}))
	all, sum := examined(t, doctor.Config{Log: l}, doctor.Options{Rate: 1_000_000})
	if want := (doctor.Counts{Agents: 2, Frames: 11, Events: 12}); len(all) != 0 || sum != want {
		t.Errorf("%+v %+v", all, sum)
	}
	_, err := doctor.New(doctor.Config{Log: l}).Agent(t.Context(), agents[2], doctor.Options{}, nil)
	if messages.AsError(err).Code != messages.NotFound {
		t.Errorf("an agent that is not there: %v", err)
	}
	asked := make(chan messages.AgentID, 3)
	failing := errors.New("the snapshots are away")
	cfg := doctor.Config{Log: l, Checks: []doctor.Check{func(_ context.Context, s doctor.Subject, _ doctor.Options, _ func(doctor.Finding)) error {
		asked <- s.Agent
		if s.Agent == agents[0] && (s.Tail != tail || s.Summary.Phase != messages.PhaseIdle || s.Stream == "") {
			t.Errorf("%+v, want the tail %+v", s, tail)
		}
		if s.Agent == agents[1] {
			return failing
		}
		return nil
	}}}
	if _, err := doctor.New(cfg).Shard(t.Context(), int(agents[0].Partition()), doctor.Options{}, nil, nil); !errors.Is(err, failing) || len(asked) == 0 {
		t.Errorf("a check that fails: %v", err)
	}
}

func TestBlobs(t *testing.T) {
	l := memlog.New()
	a, b := logtest.Agent("ada"), logtest.Agent("bob")
	put := func(a messages.AgentID, text string) messages.Blob {
		t.Helper()
		blob, err := l.PutBlob(t.Context(), a, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return blob
	}
	good, spoilt, orphan := put(a, "good"), put(a, "spoilt"), put(a, "orphan")
	missing := messages.Blob{SHA256: messages.DigestOf([]byte("missing")), Size: 7}
	short := put(b, "short")
	tail := append1(t, l, logtest.Entry(t, a, eventlog.Position{}, naming(good), naming(spoilt)))
	append1(t, l, logtest.Entry(t, a, tail, naming(missing)))
	append1(t, l, logtest.Entry(t, b, eventlog.Position{}, naming(messages.Blob{SHA256: short.SHA256, Size: 99}), naming(short)))
	l.Tamper(a, spoilt.SHA256, func(b []byte) []byte { b[0] ^= 1; return b })
	sealed := logtest.Agent("sealed")
	put(sealed, "of an event that cannot be read")
	append1(t, l, logtest.Entry(t, sealed, eventlog.Position{}, messages.CommandNoop{Command: "abort", Reason: "sealed"}))

	age := 59 * time.Minute
	cfg := doctor.Config{Log: l, Blobs: l, Named: named, BlobStored: func(context.Context, messages.AgentID, messages.Blob) (time.Time, error) {
		return time.Now().Add(-age), nil
	}}
	about := func(all []doctor.Finding, b messages.Blob) (found []doctor.Finding) {
		for _, f := range all {
			if strings.Contains(f.Detail, string(b.SHA256)) {
				found = append(found, f)
			}
		}
		return found
	}
	all, sum := examined(t, cfg, doctor.Options{Repair: true})
	if sum.Problems != 2 || len(all) != 2 || sum.Blobs != 5 || sum.Repaired != 0 {
		t.Fatalf("young: %+v %+v", all, sum)
	}
	if f := about(all, missing); len(f) != 1 || f[0].Event != 3 || f[0].Agent != a {
		t.Errorf("missing: %+v", f)
	}
	if f := about(all, short); len(f) != 1 || !strings.Contains(f[0].Detail, "5 bytes, not 99") {
		t.Errorf("short: %+v", f)
	}
	age = 61 * time.Minute
	all, sum = examined(t, cfg, doctor.Options{Deep: true})
	if sum.Problems != 3 || len(about(all, spoilt)) != 1 || len(about(all, good)) != 0 {
		t.Errorf("deep: %+v %+v", all, sum)
	}
	if f := about(all, orphan); len(f) != 1 || f[0].Status != doctor.Warn || f[0].Repaired {
		t.Errorf("orphan: %+v", f)
	}
	all, sum = examined(t, cfg, doctor.Options{Repair: true})
	if f := about(all, orphan); len(f) != 1 || !f[0].Repaired || sum.Repaired != 1 {
		t.Errorf("repaired: %+v %+v", f, sum)
	}
	if all, _ = examined(t, cfg, doctor.Options{}); len(about(all, orphan)) != 0 {
		t.Errorf("after the repair: %+v", all)
	}
	for _, keep := range []messages.Blob{good, spoilt} {
		if len(about(all, keep)) != 0 {
			t.Errorf("%s was removed", keep.SHA256)
		}
	}
}

// A payload that a fork names may be stored for one of those that its events come from.
func TestBlobsOfAFork(t *testing.T) {
	l := memlog.New()
	a, b, c, lost := logtest.Agent("ada"), logtest.Agent("bob"), logtest.Agent("cat"), logtest.Agent("lost")
	blob, err := l.PutBlob(t.Context(), a, strings.NewReader("large"))
	if err != nil {
		t.Fatal(err)
	}
	missing := messages.Blob{SHA256: messages.DigestOf([]byte("missing")), Size: 7}
	wrong := messages.Blob{SHA256: blob.SHA256, Size: blob.Size + 1}
	append1(t, l, logtest.Entry(t, a, eventlog.Position{}, naming(blob)))
	append1(t, l, logtest.Entry(t, b, eventlog.Position{}, naming(missing), naming(blob)))
	append1(t, l, logtest.Entry(t, c, eventlog.Position{}, naming(blob)))
	append1(t, l, logtest.Entry(t, lost, eventlog.Position{}, naming(missing)))
	parents := map[messages.AgentID]messages.AgentID{b: a, c: b, lost: {}}
	cfg := doctor.Config{Log: l, Blobs: l, Named: named, Parent: func(_ context.Context, a messages.AgentID) (messages.AgentID, bool, error) {
		parent, forked := parents[a]
		return parent, forked, nil
	}}
	for _, deep := range []bool{false, true} {
		all, _ := examined(t, cfg, doctor.Options{Deep: deep})
		if len(all) != 1 || all[0].Agent != b || !strings.Contains(all[0].Detail, string(missing.SHA256)) {
			t.Errorf("deep %t: got %+v, want that a payload of bob is missing", deep, all)
		}
	}
	append1(t, l, logtest.Entry(t, logtest.Agent("dan"), eventlog.Position{}, naming(wrong)))
	parents[logtest.Agent("dan")] = c
	if all, _ := examined(t, cfg, doctor.Options{}); len(all) != 2 {
		t.Errorf("got %+v, want that a payload of dan has another size, too", all)
	}
	l.Tamper(a, blob.SHA256, func(b []byte) []byte { b[0] ^= 1; return b })
	if all, _ := examined(t, cfg, doctor.Options{Deep: true}); len(all) != 5 {
		t.Errorf("got %+v, want that the payload cannot be read, by each that names it", all)
	}
}

// A payload that an event of a detached fork names as its parent's, by what it is encrypted to, is not missing
// where the parent is gone: the fork's copy has another name. A payload named by its content is.
func TestBlobsOfADetachedFork(t *testing.T) {
	l := memlog.New()
	of := messages.Blob{SHA256: messages.DigestOf([]byte("encrypted with the parent's key")), Size: -1}
	missing := messages.Blob{SHA256: messages.DigestOf([]byte("missing")), Size: 7}
	fork, detached := logtest.Agent("fork"), logtest.Agent("detached")
	cfg := doctor.Config{Log: l, Blobs: l, Named: named, Parent: func(_ context.Context, a messages.AgentID) (messages.AgentID, bool, error) {
		return logtest.Agent("gone"), a == fork || a == detached, nil
	}}
	append1(t, l, logtest.Entry(t, fork, eventlog.Position{}, naming(of)))
	append1(t, l, logtest.Entry(t, detached, eventlog.Position{}, naming(of), naming(missing), messages.ForkDetached{Frames: &messages.Blob{SHA256: "copy", Size: 1}, Last: 1}))
	all, _ := examined(t, cfg, doctor.Options{Deep: true})
	got := make(map[messages.AgentID]string)
	for _, f := range all {
		got[f.Agent] += f.Detail
	}
	if len(all) != 2 || !strings.Contains(got[fork], string(of.SHA256)) || !strings.Contains(got[detached], string(missing.SHA256)) {
		t.Errorf("got %+v", all)
	}
}

// awakened is a log whose agent continues when its first payload is removed, and
// names another.
type awakened struct {
	*memlog.Log
	wake func()
}

// RemoveBlobs wakes the agent.
func (l awakened) RemoveBlobs(ctx context.Context, a messages.AgentID, upto uint64, hashes ...messages.Digest) error {
	l.wake()
	return l.Log.RemoveBlobs(ctx, a, upto, hashes...)
}

// If an agent continues while its payloads are removed, no more are removed.
func TestBlobsOfAnAgentThatGoesOn(t *testing.T) { // A36
	l, a := memlog.New(), logtest.Agent("ada")
	var orphans []messages.Blob
	for i := range 5 {
		b, err := l.PutBlob(t.Context(), a, strings.NewReader(fmt.Sprint("orphan ", i)))
		if err != nil {
			t.Fatal(err)
		}
		orphans = append(orphans, b)
	}
	tail := grow(t, l, a, eventlog.Position{}, 2)
	log := awakened{l, func() {
		var events []messages.Event
		for _, b := range orphans {
			events = append(events, naming(b))
		}
		tail = append1(t, l, logtest.Entry(t, a, tail, events...))
	}}
	cfg := doctor.Config{Log: log, Blobs: log, Named: named, BlobStored: func(context.Context, messages.AgentID, messages.Blob) (time.Time, error) {
		return time.Time{}, nil
	}}
	if all, sum := examined(t, cfg, doctor.Options{Repair: true}); sum.Repaired != 1 {
		t.Errorf("%+v %+v", all, sum)
	}
}

// A payload whose agent has no frame, or only a foreign message, is seen too.
func TestBlobsWithoutALog(t *testing.T) { // A36
	l := memlog.New()
	born, stray, strange := logtest.Agent("born"), logtest.Agent("stray"), logtest.Agent("strange")
	agents := []messages.AgentID{born, stray, strange}
	for _, a := range agents {
		if _, err := l.PutBlob(t.Context(), a, strings.NewReader("of "+a.Key)); err != nil {
			t.Fatal(err)
		}
	}
	grow(t, l, born, eventlog.Position{}, 2)
	l.Inject(eventlog.Entry{Agent: strange, Bytes: []byte("who am I")}, true)
	age := 59 * time.Minute
	cfg := doctor.Config{
		Log: l, Blobs: l, Named: named,
		BlobStored: func(context.Context, messages.AgentID, messages.Blob) (time.Time, error) {
			return time.Now().Add(-age), nil
		},
		BlobAgents: func(_ context.Context, shard int) (list []messages.AgentID, err error) {
			return slices.DeleteFunc(slices.Clone(agents), func(a messages.AgentID) bool { return int(a.Partition()) != shard }), nil
		},
	}
	told := func(o doctor.Options) (names string) {
		all, _ := examined(t, cfg, o)
		var list []string
		for _, f := range all {
			if f.Check == "blob" {
				list = append(list, fmt.Sprint(f.Agent.Key, f.Repaired))
			}
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	for _, c := range []struct {
		age  time.Duration
		o    doctor.Options
		want string
	}{
		{59 * time.Minute, doctor.Options{Deep: true, Repair: true}, ""},
		{2 * time.Hour, doctor.Options{}, "bornfalse"},
		{2 * time.Hour, doctor.Options{Deep: true}, "bornfalse strangefalse strayfalse"},
		{2 * time.Hour, doctor.Options{Deep: true, Repair: true}, "borntrue strangetrue straytrue"},
		{2 * time.Hour, doctor.Options{Deep: true, Repair: true}, ""},
	} {
		if age = c.age; told(c.o) != c.want {
			t.Errorf("%v %+v: told %q, want %q", c.age, c.o, told(c.o), c.want)
		}
	}
}

// racing is a log whose agents continue while they are examined.
type racing struct {
	*memlog.Log
	t *testing.T
}

func (r racing) Head(ctx context.Context, a messages.AgentID) (eventlog.Position, error) {
	tail, err := r.Log.Head(ctx, a)
	if err != nil {
		return tail, err
	}
	return append1(r.t, r.Log, logtest.Entry(r.t, a, tail)), nil
}

// A payload is stored before the event that names it: of an agent that has gone
// on meanwhile none is removed.
func TestAgentGoesOnMeanwhile(t *testing.T) {
	l := memlog.New()
	a := logtest.Agent("ada")
	b, err := l.PutBlob(t.Context(), a, strings.NewReader("about to be named"))
	if err != nil {
		t.Fatal(err)
	}
	grow(t, l, a, eventlog.Position{}, 1)
	cfg := doctor.Config{Log: racing{l, t}, Blobs: l, Named: named, BlobStored: func(context.Context, messages.AgentID, messages.Blob) (time.Time, error) {
		return time.Time{}, nil
	}}
	all, sum := examined(t, cfg, doctor.Options{Repair: true})
	if len(all) != 0 || sum.Repaired != 0 {
		t.Errorf("%+v %+v", all, sum)
	}
	if r, err := l.Blob(t.Context(), a, b); err != nil {
		t.Error(err)
	} else if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestOnlySoMuchIsTold(t *testing.T) {
	l := memlog.New()
	a := logtest.Agent("ada")
	for range 1100 {
		l.Inject(eventlog.Entry{Agent: a, Bytes: []byte("who am I")}, true)
	}
	if all, sum := examined(t, doctor.Config{Log: l}, doctor.Options{}); len(all) != 1000 || sum.Untold != 100 || sum.Foreign != 1100 {
		t.Errorf("%d told, %+v", len(all), sum)
	}
}

// ahead is a log whose reader has read the first frames of an agent ahead of its
// delete.
type ahead struct {
	*memlog.Log
	sealed int // how many of them cannot be opened any more
}

// ReadShard yields them as they were.
func (l ahead) ReadShard(ctx context.Context, shard int, after uint64) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		for m, err := range l.Log.ReadShard(ctx, shard, after) {
			if m.Seq > 0 && m.Seq <= uint64(l.sealed) {
				m.Frame = func() (*messages.Frame, error) { return nil, messages.ErrShredded }
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// Nor is one whose key goes with it before all was read.
func TestShreddedWhileExamined(t *testing.T) { // A108
	l, a := memlog.New(), logtest.Agent("a")
	tail := grow(t, l, a, eventlog.Position{}, 3) // the third is never sealed
	tail = append1(t, l, logtest.Entry(t, a, tail, messages.AgentDeleted{}))
	grow(t, l, a, tail, 2)
	found, sum := examined(t, doctor.Config{Log: ahead{l, 2}}, doctor.Options{})
	if len(found) != 0 || sum.Problems != 0 || sum.Agents != 1 || sum.Frames != 6 {
		t.Errorf("%+v %+v", found, sum)
	}
}

// Nor does one that is deleted while what lies beside its log is examined keep the
// others from being examined.
func TestDeletedWhileChecked(t *testing.T) { // A108
	l := memlog.New()
	all := logtest.Neighbours(3)
	for _, a := range all {
		grow(t, l, a, eventlog.Position{}, 2)
	}
	checked := make(chan messages.AgentID, len(all))
	check := func(ctx context.Context, s doctor.Subject, _ doctor.Options, _ func(doctor.Finding)) error {
		if checked <- s.Agent; s.Agent != all[1] {
			return nil
		}
		_, err := l.Append(ctx, logtest.Entry(t, s.Agent, s.Tail, messages.AgentDeleted{}))
		return errors.Join(err, messages.Refuse(messages.Unavailable, "%s was deleted while it was read: ask again", s.Agent))
	}
	found, _ := examined(t, doctor.Config{Log: l, Checks: []doctor.Check{check}}, doctor.Options{})
	if len(found) != 0 || len(checked) != len(all) {
		t.Errorf("%d were examined; %+v", len(checked), found)
	}
}
