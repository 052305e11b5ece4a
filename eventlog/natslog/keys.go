package natslog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/messages"
)

// Bucket is the key-value bucket of the agents' keys. It is read from its leader
// and never from a copy. Get it from [Log.FindKeys] or [Log.MakeKeys]. Safe for
// concurrent use.
type Bucket struct {
	c       *conn
	stream  string
	subject string // before the names
}

var _ encrypted.Bucket = (*Bucket)(nil)

// KeysOf is the name of the stream behind the bucket of an installation's keys. A
// backup leaves it out: with both one can read what was deleted.
func KeysOf(s messages.Subjects) string { return "KV_" + root(s) + "_keys" }

func (l *Log) bucket() *Bucket {
	return &Bucket{c: l.conns[0], stream: KeysOf(l.subjects), subject: "$KV." + root(l.subjects) + "_keys."}
}

// FindKeys returns the bucket of the agents' keys; nil if there is none, as in an
// installation that was never encrypted.
func (l *Log) FindKeys(ctx context.Context) (*Bucket, error) {
	b := l.bucket()
	_, err := b.c.js.Stream(ctx, b.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	return b, err
}

// MakeKeys returns the bucket of the agents' keys, and makes it, with so many
// replicas, if there is none.
func (l *Log) MakeKeys(ctx context.Context, replicas int) (*Bucket, error) {
	b := l.bucket()
	return b, ensureOne(ctx, b.c.js, jetstream.StreamConfig{
		Name: b.stream, Description: "reprise: the wrapped keys of the agents", Subjects: []string{b.subject + ">"},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
		MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: keptValues, MaxMsgSize: -1, MaxConsumers: -1,
		Replicas: max(1, replicas), Duplicates: shortest, AllowRollup: true, DiscardNewPerSubject: true,
	})
}

// metadataEncrypted is where the stream of definitions says that frames may be
// encrypted, by a name that this store alone has. Unlike the bucket it is in every
// backup.
const metadataEncrypted = "reprise-encrypted"

// MarkEncrypted notes that frames may be encrypted from now on.
func (l *Log) MarkEncrypted(ctx context.Context) error {
	cfg, err := l.definitions(ctx)
	if err != nil || EncryptedBy(cfg) {
		return err
	}
	mark := make([]byte, 16)
	_, _ = rand.Read(mark) // never fails
	cfg.Metadata = ownMetadata(cfg.Metadata)
	cfg.Metadata[metadataEncrypted] = hex.EncodeToString(mark)
	if _, err := l.conns[0].js.UpdateStream(ctx, cfg); err != nil {
		return fmt.Errorf("note on stream %s that the store is encrypted: %w", cfg.Name, err)
	}
	return nil
}

// MarkedEncrypted reports whether frames may be encrypted, wherever their keys are.
func (l *Log) MarkedEncrypted(ctx context.Context) (bool, error) {
	cfg, err := l.definitions(ctx)
	return EncryptedBy(cfg), err
}

// Encryption is the name that the store got when it was first encrypted, and how
// many copies its streams have. Empty: it never was.
func (l *Log) Encryption(ctx context.Context) (name string, replicas int, err error) {
	cfg, err := l.definitions(ctx)
	return cfg.Metadata[metadataEncrypted], cfg.Replicas, err
}

// EncryptedBy returns the id of the key that the agent's present life is encrypted with. Empty:
// nothing of it is, or the agent is deleted or never was. The error for what cannot be read is a
// *eventlog.DamageError.
func (l *Log) EncryptedBy(ctx context.Context, a messages.AgentID) (id string, err error) {
	newest, _, err := l.newestFrame(ctx, a)
	if err != nil || newest == nil {
		return "", err
	}
	if f, err := decode(a, newest); err == nil && f.KeyID != "" {
		return f.KeyID, nil
	}
	for m, err := range l.scan(ctx, a, 0, newest.seq) { // rare: the newest frame is one that is never encrypted
		if err != nil {
			return "", err
		}
		if !m.isFrame() {
			continue
		}
		f, err := decode(a, m)
		switch {
		case err != nil:
			return "", &eventlog.DamageError{Agent: a, Seq: m.seq, Err: err}
		case eventlog.Ends(f):
			id = ""
		case f.KeyID != "":
			id = f.KeyID
		}
	}
	return id, nil
}

// EncryptedBy reports whether a stream's settings note that frames may be encrypted.
func EncryptedBy(cfg jetstream.StreamConfig) bool { return cfg.Metadata[metadataEncrypted] != "" }

func (l *Log) definitions(ctx context.Context) (jetstream.StreamConfig, error) {
	s, err := l.conns[0].js.Stream(ctx, l.names.Definitions())
	if err != nil {
		return jetstream.StreamConfig{}, fmt.Errorf("look up stream %s: %w", l.names.Definitions(), err)
	}
	return s.CachedInfo().Config, nil
}

// Name is the bucket's.
func (b *Bucket) Name() string { return strings.TrimPrefix(b.stream, "KV_") }

// keptValues is how many values of a name the server lets be. Put removes the one
// that it replaces by itself, since the server would not write over it.
const keptValues = 64

// Get returns a value; see encrypted.Bucket.
func (b *Bucket) Get(ctx context.Context, name string) (value []byte, revision uint64, err error) {
	m, err := b.c.newest(ctx, b.stream, b.subject+name)
	if err != nil || m == nil || m.header.Get("KV-Operation") != "" {
		return nil, 0, err
	}
	return m.data, m.seq, nil
}

// Put stores a value; see encrypted.Bucket. What it replaces is overwritten on disk.
func (b *Bucket) Put(ctx context.Context, name string, value []byte, revision uint64) error {
	_, err := b.c.publish(ctx, &nats.Msg{Subject: b.subject + name, Data: value, Header: nats.Header{
		headerStream: {b.stream},
		headerFence:  {strconv.FormatUint(revision, 10)},
	}})
	if conflicting(err) {
		return encrypted.ErrChanged
	}
	if err == nil && revision != 0 {
		err = b.Erase(ctx, name, revision)
	}
	return err
}

// Erase removes a value and those before it; see encrypted.Bucket. The server writes
// over it.
func (b *Bucket) Erase(ctx context.Context, name string, revision uint64) error {
	ask, err := json.Marshal(struct {
		Seq uint64 `json:"seq"`
	}{revision})
	if err != nil {
		return err
	}
	answer, err := b.c.request(ctx, &nats.Msg{Subject: "$JS.API.STREAM.MSG.DELETE." + b.stream, Data: ask})
	if err != nil {
		return fmt.Errorf("erase a key: %w", err)
	}
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Success bool                `json:"success"`
	}
	err = json.Unmarshal(answer.Data, &got)
	switch {
	case err != nil:
		return fmt.Errorf("erase a key: %w", err)
	case got.Error != nil:
		if m, err := b.c.at(ctx, b.stream, revision); err != nil || m != nil {
			return fmt.Errorf("erase a key: %w", got.Error)
		}
	}
	return b.c.purge(ctx, b.stream, b.subject+name, revision) // what a Put that was cut off has left
}

// List returns all names; see encrypted.Bucket.
func (b *Bucket) List(ctx context.Context) ([]string, error) {
	s, err := b.c.js.Stream(ctx, b.stream)
	if err != nil {
		return nil, err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(b.subject+">"))
	if err != nil {
		return nil, err
	}
	var names []string
	for subject := range info.State.Subjects {
		names = append(names, strings.TrimPrefix(subject, b.subject))
	}
	slices.Sort(names)
	return names, nil
}
