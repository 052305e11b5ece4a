package encrypted

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"

	"github.com/reprise-dev/reprise/messages"
)

// prefix begins an encrypted snapshot; the 8 bytes of its key's id follow. No codec writes a
// zero byte first.
var prefix = []byte("\x00reprise\x01")

const idSize = 8

// snapshotContext returns what an encrypted snapshot is bound to.
func snapshotContext(a messages.AgentID, name string) []byte {
	return []byte(a.Full() + "\x00snapshot\x00" + name)
}

// PutSnapshot encrypts the snapshot and stores it; see eventlog.Snapshots.
func (l *Log) PutSnapshot(ctx context.Context, a messages.AgentID, name string, snapshot []byte) error {
	if err := l.closed(); err != nil {
		return err
	}
	if l.keys == nil {
		return l.log.PutSnapshot(ctx, a, name, snapshot)
	}
	key, err := l.keys.writing(ctx, a)
	if err != nil {
		return err
	}
	id, err := hex.DecodeString(key.id)
	if err != nil {
		return err
	}
	stored := append(append(bytes.Clone(prefix), id...), key.Encrypt(snapshot, snapshotContext(a, name))...)
	return l.log.PutSnapshot(ctx, a, name, stored)
}

// Snapshot returns a snapshot, decrypted; see eventlog.Snapshots. One that cannot be decrypted
// is treated as if there were none.
func (l *Log) Snapshot(ctx context.Context, a messages.AgentID, name string) ([]byte, error) {
	b, err := l.log.Snapshot(ctx, a, name)
	rest, encrypted := bytes.CutPrefix(b, prefix)
	switch {
	case err != nil || !encrypted:
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
	plain, err := key.Decrypt(rest[idSize:], snapshotContext(a, name))
	if err != nil {
		return nil, nil
	}
	return append([]byte{}, plain...), nil // not nil if it is empty
}
