package sealed

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"

	"github.com/reprise-dev/reprise/messages"
)

// begins is what a sealed snapshot begins with; then come the 8 bytes of its
// key's id. No codec writes a zero byte first.
var begins = []byte("\x00reprise\x01")

const idSize = 8

func snapshotAbout(a messages.AgentID, name string) []byte {
	return []byte(a.Full() + "\x00snapshot\x00" + name)
}

// PutSnapshot seals the snapshot and stores it; see eventlog.Snapshots.
func (l *Log) PutSnapshot(ctx context.Context, a messages.AgentID, name string, snapshot []byte) error {
	if err := l.closed(); err != nil {
		return err
	}
	if l.keys == nil {
		return l.Log.PutSnapshot(ctx, a, name, snapshot)
	}
	key, err := l.keys.writing(ctx, a)
	if err != nil {
		return err
	}
	id, err := hex.DecodeString(key.id)
	if err != nil {
		return err
	}
	sealed := append(append(bytes.Clone(begins), id...), key.Encrypt(snapshot, snapshotAbout(a, name))...)
	return l.Log.PutSnapshot(ctx, a, name, sealed)
}

// Snapshot gives a snapshot, opened; see eventlog.Snapshots. One that cannot be
// opened is as good as none.
func (l *Log) Snapshot(ctx context.Context, a messages.AgentID, name string) ([]byte, error) {
	b, err := l.Log.Snapshot(ctx, a, name)
	rest, sealed := bytes.CutPrefix(b, begins)
	switch {
	case err != nil || !sealed:
		return b, err
	case l.keys == nil || len(rest) < idSize:
		return nil, nil
	}
	key, err := l.keys.reading(ctx, a, hex.EncodeToString(rest[:idSize]))
	if errors.Is(err, ErrNoKey) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	plain, err := key.Decrypt(rest[idSize:], snapshotAbout(a, name))
	if err != nil {
		return nil, nil
	}
	return append([]byte{}, plain...), nil // an empty one is one
}
