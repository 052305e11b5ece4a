package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/backup"
	"github.com/reprise-dev/reprise/messages"
)

// safe is a site whose agents are encrypted.
type safe struct {
	*site
	log    *natslog.Log
	bucket *natslog.Bucket
	keys   *encrypted.Keys
	agents *encrypted.Log
	tails  map[messages.AgentID]eventlog.Position
}

func key(b byte) encrypted.Key { return encrypted.Key(bytes.Repeat([]byte{b}, len(encrypted.Key{}))) }

func newSafe(t *testing.T, agents ...messages.AgentID) *safe {
	t.Helper()
	s := &safe{site: newSite(t), tails: make(map[messages.AgentID]eventlog.Position)}
	s.log = s.open()
	s.unlock(key(1))
	for _, a := range agents {
		s.grow(a)
	}
	return s
}

func (s *safe) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// unlock opens the bucket as a node does that starts.
func (s *safe) unlock(ring ...encrypted.Key) {
	s.t.Helper()
	var err error
	s.bucket, err = s.log.MakeKeys(within(s.t), 1)
	s.ok(err)
	s.keys, err = encrypted.Open(within(s.t), s.bucket, ring...)
	s.ok(err)
	s.ok(s.log.MarkEncrypted(within(s.t)))
	s.agents = encrypted.New(s.log.Store(), s.log, s.keys)
}

func (s *safe) grow(a messages.AgentID) {
	s.t.Helper()
	s.tails[a] = grow(s.t, s.agents, a, s.tails[a], 2)
}

// delete ends an agent; with shred its key goes, too, as behind a purge.
func (s *safe) delete(a messages.AgentID, shred bool) {
	s.t.Helper()
	tail, err := eventlog.Commit(within(s.t), s.agents, logtest.Entry(s.t, a, s.tails[a], messages.AgentDeleted{}))
	s.ok(err)
	s.tails[a] = tail
	if shred {
		s.ok(s.agents.Purge(within(s.t), a, tail.Seq))
		_, err = s.keys.Shred(within(s.t), a, func(context.Context) (bool, error) { return true, nil })
		s.ok(err)
	}
}

func (s *safe) copyKeys() (string, *backup.Keys) {
	s.t.Helper()
	var file bytes.Buffer
	m, err := backup.WriteKeys(within(s.t), &file, s.config())
	s.ok(err)
	return file.String(), m
}

func (s *safe) putBack(file string, ring ...encrypted.Key) (backup.KeysRestored, error) {
	_, r, err := backup.RestoreKeys(within(s.t), strings.NewReader(file), backup.KeysConfig{Config: s.config(), Wrapping: ring})
	return r, err
}

// lose removes the bucket.
func (s *safe) lose() {
	s.t.Helper()
	s.ok(s.js.DeleteStream(within(s.t), natslog.KeysOf(messages.Subjects{})))
}

// reads returns an error unless an agent's log can be read.
func (s *safe) reads(a messages.AgentID) error {
	for _, err := range s.agents.Read(within(s.t), a, eventlog.Range{}) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestKeysComeBack(t *testing.T) { // A108
	t.Parallel()
	all := logtest.Neighbours(5)
	kept, dying, gone, anew, other := all[0], all[1], all[2], all[3], all[4]
	s := newSafe(t, all...)
	s.delete(dying, false) // its purge has not come to the key yet
	file, m := s.copyKeys()
	if m.Keys != 4 || m.LeftOut != 1 || strings.Contains(file, dying.Full()) || !strings.Contains(file, kept.Full()) {
		t.Errorf("copied were %d, left out %d:\n%s", m.Keys, m.LeftOut, file)
	}
	s.delete(gone, true)
	s.delete(anew, true)
	s.grow(anew)
	s.lose()
	s.unlock(key(1))
	_, err := s.agents.PutBlob(within(t), other, strings.NewReader("a key that nothing needs")) // there is another key now
	s.ok(err)
	if err := s.reads(kept); !errors.Is(err, encrypted.ErrNoKey) {
		t.Errorf("without keys: %v", err)
	}
	for again, want := range []backup.KeysRestored{{Back: 1, Unused: 2, Other: 1}, {There: 1, Unused: 2, Other: 1}} {
		if got, err := s.putBack(file, key(1)); got != want || err != nil {
			t.Errorf("time %d: %+v, %v; want %+v", again+1, got, err, want)
		}
	}
	s.ok(s.reads(kept))
	if err := s.reads(anew); !errors.Is(err, encrypted.ErrNoKey) {
		t.Errorf("the new life of a deleted agent: %v", err)
	}
	names, err := encrypted.Agents(within(t), s.bucket)
	if s.ok(err); len(names) != 2 {
		t.Errorf("the bucket has keys of %v", names)
	}
}

// A backup is of no use without the copy of its keys, and with one that is newer
// what was deleted between them stays unreadable.
func TestKeysOfABackup(t *testing.T) { // A108
	t.Parallel()
	all := logtest.Neighbours(3)
	one := newSafe(t, all...)
	store := one.backup()
	one.delete(all[1], true)
	file, _ := one.copyKeys()

	two := &safe{site: newSite(t), tails: one.tails}
	two.ok(two.restore(store, false))
	two.log = two.open()
	if b, err := two.log.FindKeys(within(t)); b != nil || err != nil {
		t.Fatalf("a backup has keys: %v, %v", b, err)
	}
	if got, err := two.putBack(file); got != (backup.KeysRestored{Back: 2}) || err != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	two.unlock(key(1))
	for i, a := range all {
		if err := two.reads(a); (err == nil) == (i == 1) || i == 1 && !errors.Is(err, encrypted.ErrNoKey) {
			t.Errorf("agent %d: %v", i, err)
		}
	}
}

func TestKeysAreWrappedAnew(t *testing.T) {
	t.Parallel()
	all := logtest.Neighbours(2)
	s := newSafe(t, all...)
	file, _ := s.copyKeys()
	s.unlock(key(2), key(1))
	_, err := s.keys.Rotate(within(t))
	s.ok(err)
	s.lose()
	s.unlock(key(2)) // it knows of no other
	if got, err := s.putBack(file); got.Failed != 2 || err != nil {
		t.Errorf("without wrapping keys: %+v, %v", got, err)
	}
	if _, err := s.putBack(file, key(1)); err == nil || !strings.Contains(err.Error(), key(2).ID()) {
		t.Errorf("with the old one alone: %v", err)
	}
	if got, err := s.putBack(file, key(2), key(1)); got != (backup.KeysRestored{Back: 2}) || err != nil {
		t.Errorf("with both: %+v, %v", got, err)
	}
	s.unlock(key(2))
	s.ok(s.reads(all[0]))
}

// A key that is damaged in its bucket is put back as one that is missing is, and
// until then no copy is made that could take the place of the one that has it.
func TestDamagedKeysComeBack(t *testing.T) { // A29
	t.Parallel()
	all := logtest.Neighbours(3)
	torn, flipped, ended := all[0], all[1], all[2]
	s := newSafe(t, all...)
	file, _ := s.copyKeys()
	s.tails[ended], _ = eventlog.Commit(within(t), s.agents, logtest.Entry(t, ended, s.tails[ended], messages.AgentDeleted{}))
	for a, change := range map[messages.AgentID]func([]byte) []byte{
		torn:    func(b []byte) []byte { return b[:len(b)/2] },
		flipped: func(b []byte) []byte { b[len(b)-10] ^= 1; return b },
	} {
		name := a.Tenant + "." + a.Kind + "." + a.Key
		value, revision, err := s.bucket.Get(within(t), name)
		s.ok(err)
		s.ok(s.bucket.Put(within(t), name, change(bytes.Clone(value)), revision))
	}
	s.unlock(key(1))
	for _, a := range all[:2] {
		if err := s.reads(a); !errors.Is(err, messages.ErrLocked) {
			t.Errorf("a damaged key: %v", err)
		}
	}
	if _, err := backup.WriteKeys(within(t), new(bytes.Buffer), s.config()); err == nil || !strings.Contains(err.Error(), "from your last copy") {
		t.Errorf("a copy of damaged keys: %v", err)
	}
	if got, err := s.putBack(file, key(1)); got != (backup.KeysRestored{Back: 2, Unused: 1}) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, a := range all[:2] {
		s.ok(s.reads(a))
	}
}

func TestBadKeys(t *testing.T) { // A29
	t.Parallel()
	all := logtest.Neighbours(3)
	s := newSafe(t, all...)
	file, _ := s.copyKeys()
	elsewhere, _ := newSafe(t, all...).copyKeys()
	lines := strings.SplitAfter(file, "\n")
	s.lose()
	flipped := []byte(file)
	flipped[len(flipped)/2] ^= 1
	for what, bad := range map[string]struct {
		file, want string
		ring       []encrypted.Key
	}{
		"nothing":         {file: "", want: "does not begin"},
		"something else":  {file: "hello\n", want: "does not begin"},
		"no end":          {file: strings.Join(lines[:3], ""), want: "cut short"},
		"no sum":          {file: strings.Join(lines[:5], ""), want: "cut short"},
		"half a line":     {file: file[:len(file)*2/3], want: "whole"},
		"a line less":     {file: strings.Join(append(append([]string{}, lines[:2]...), lines[3:]...), ""), want: "not those"},
		"a line more":     {file: file + lines[1], want: "behind its end"},
		"a flipped bit":   {file: string(flipped), want: "no whole copy"},
		"a later version": {file: strings.Replace(file, `"format":1`, `"format":9`, 1), want: "later one"},
		"another store":   {file: elsewhere, want: "another store"},
		"another key":     {file: file, want: key(1).ID(), ring: []encrypted.Key{key(7)}},
	} {
		if got, err := s.putBack(bad.file, bad.ring...); got != (backup.KeysRestored{}) || err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %+v, %v; want %q", what, got, err, bad.want)
		}
		if _, err := s.js.Stream(within(t), natslog.KeysOf(messages.Subjects{})); !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Fatalf("%s: something was made: %v", what, err)
		}
	}
	for at := range len(file) { // whatever is changed, nothing is put back that was not copied
		b := []byte(file)
		b[at] ^= 4
		if m, err := backup.VerifyKeys(bytes.NewReader(b)); err == nil {
			t.Fatalf("byte %d changed: %+v", at, m)
		}
	}
	empty := newSite(t)
	if _, _, err := backup.RestoreKeys(within(t), strings.NewReader(file), backup.KeysConfig{Config: empty.config()}); err == nil || !strings.Contains(err.Error(), "is this the server") {
		t.Errorf("a server without an installation: %v", err)
	}
	plain := newSite(t)
	plain.open()
	if _, err := backup.WriteKeys(within(t), new(bytes.Buffer), plain.config()); !errors.Is(err, backup.ErrPlain) {
		t.Errorf("a store that is not encrypted: %v", err)
	}
	if _, err := backup.WriteKeys(within(t), new(bytes.Buffer), s.config()); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("a store without its keys: %v", err)
	}
	if fmt.Sprint(empty.names()) != "[]" {
		t.Errorf("streams were made: %v", empty.names())
	}
}

// names are those of all streams.
func (s *site) names() (names []string) {
	for name := range s.js.StreamNames(within(s.t)).Name() {
		names = append(names, name)
	}
	return names
}
