package backup

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// format is the newest format of the file that this version reads.
const format = 1

// The names of the entries that are no streams.
const (
	entryHead     = "reprise.json"
	entryManifest = "manifest.json"
	entryDigest   = "manifest.sha256"
)

// Manifest says what is in a backup. Its JSON form is a part of the file.
type Manifest struct {
	Format  int       `json:"format"`
	Version string    `json:"version,omitempty"` // of the program that wrote it
	Root    string    `json:"root"`
	Begun   time.Time `json:"begun"`
	Ended   time.Time `json:"ended,omitzero"`
	Streams []Stream  `json:"streams,omitempty"`
	// Taken is what was taken out of the log's streams because it could not be read: its
	// agents are damaged in a restored store, too.
	Taken natslog.Recorded `json:"taken,omitempty"`
}

// Stream is one stream of a backup.
type Stream struct {
	Name string `json:"name"`
	// Messages, Bytes, First and Last are as the server had them when it began to
	// send; of a work queue fewer messages may be in the file, and from a server
	// before 2.15 newer ones of any stream.
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	First    uint64 `json:"first"`
	Last     uint64 `json:"last"`
	// Gone are the agents of a log that were deleted while the backup was taken: what
	// the file has of them may not be whole, and is not restored.
	Gone []string `json:"gone,omitempty"`
	// Created is the stream's, as the server reports it.
	Created time.Time `json:"created"`
	// Parts, Size in bytes and SHA256 are of what the file holds.
	Parts  int    `json:"parts"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Config and State are the server's own.
	Config json.RawMessage `json:"config"`
	State  json.RawMessage `json:"state"`
}

// Messages is how many messages all streams have together.
func (m *Manifest) Messages() (n uint64) {
	for _, s := range m.Streams {
		n += s.Messages
	}
	return n
}

// Deleted is how many agents it has in part and Restore leaves out: they were deleted
// while it was taken.
func (m *Manifest) Deleted() (n int) {
	for _, s := range m.Streams {
		n += len(s.Gone)
	}
	return n
}

// Encrypted reports whether frames in it may be encrypted, under keys that it does not
// have.
func (m *Manifest) Encrypted() bool {
	for _, s := range m.Streams {
		var cfg jetstream.StreamConfig
		if json.Unmarshal(s.Config, &cfg) == nil && natslog.EncryptedBy(cfg) {
			return true
		}
	}
	return false
}

// Size is how many bytes of the file the streams take.
func (m *Manifest) Size() (n int64) {
	for _, s := range m.Streams {
		n += s.Size
	}
	return n
}

// streams are those of an installation that a backup holds, in the order in
// which it must take them; doc.go says why.
func streams(s messages.Subjects) []string {
	names := natslog.NamesOf(s)
	rank := func(name string) int {
		switch {
		case name == names.Inbox():
			return 1
		case name == names.DeadLetters():
			return 2
		case isLog(names, name):
			return 3
		}
		return 4
	}
	all := slices.DeleteFunc(natslog.StreamNames(s), func(name string) bool { return isCache(names, name) })
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// isLog reports whether a stream holds frames.
func isLog(n natslog.Names, name string) bool {
	for p := range messages.Partitions {
		if n.Log(messages.Partition(p)) == name {
			return true
		}
	}
	return false
}

// essential reports whether every version had the stream.
func essential(n natslog.Names, name string) bool { return name == n.Inbox() || isLog(n, name) }

// isCache reports whether a stream holds nothing that cannot be made again.
func isCache(n natslog.Names, name string) bool {
	return name == n.Snapshots()
}

// subjectsOf are those of a root; a root that can be none is refused.
func subjectsOf(root string) (messages.Subjects, error) {
	if root == "" {
		root = messages.DefaultRoot
	}
	if err := messages.ValidateToken("subject root", root); err != nil {
		return messages.Subjects{}, err
	}
	return messages.Subjects{Root: root}, nil
}

// check returns what is wrong with a manifest, which anyone may have written.
func (m *Manifest) check() error {
	s, err := subjectsOf(m.Root)
	if err != nil {
		return err
	}
	known, held := natslog.StreamNames(s), make(map[string]bool)
	for _, stream := range m.Streams {
		if !slices.Contains(known, stream.Name) || held[stream.Name] {
			return fmt.Errorf("it holds a stream %q, which this version does not know: restore it with the version that wrote it (%s), or a later one", stream.Name, m.Version)
		}
		held[stream.Name] = true
	}
	for _, name := range known {
		if essential(natslog.NamesOf(s), name) && !held[name] {
			return fmt.Errorf("it holds no stream %s", name)
		}
	}
	return nil
}
