package messages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/reprise-dev/reprise/messages/internal/codec"
)

// snapshotFormat is the snapshot format that this version reads and writes.
const snapshotFormat = 1

// EncodeSnapshot returns v, a pointer to a struct, as the snapshot of that name of agent a:
// one msgpack map of
//
//	f    format version
//	v    v, as [Pack] writes it
//	sum  CRC-32C of the agent's full address, the name, and all bytes before this entry
//
// The entry sum comes last and is always 9 bytes long.
func EncodeSnapshot(a AgentID, name string, v any) ([]byte, error) {
	var buf bytes.Buffer
	buf.Write(snapshotHead)
	if err := codec.Encode(&buf, v); err != nil {
		return nil, fmt.Errorf("snapshot %s of %s: %w", name, a, err)
	}
	sum := snapshotSum(a, name, buf.Bytes())
	return binary.BigEndian.AppendUint32(append(buf.Bytes(), sumEntry...), sum), nil
}

// snapshotHead is a snapshot up to its value: a map of three, the format, the
// key of the value.
var snapshotHead = []byte{0x83, 0xa1, 'f', snapshotFormat, 0xa1, 'v'}

func snapshotSum(a AgentID, name string, b []byte) uint32 {
	return crc32.Update(checksum(a, []byte(name+"\x00")), castagnoli, b)
}

// DecodeSnapshot reads a snapshot of EncodeSnapshot for the same agent and name into v, a
// pointer to a struct. It verifies the checksum first. After an error v may be partly
// written. It does not panic, whatever b is.
func DecodeSnapshot(a AgentID, name string, b []byte, v any) error {
	cut := len(b) - sumSize
	if cut < len(snapshotHead) || !bytes.Equal(b[cut:len(b)-4], sumEntry) {
		return errors.New("the snapshot has no checksum at its end: it is cut off or damaged")
	}
	if want, got := binary.BigEndian.Uint32(b[len(b)-4:]), snapshotSum(a, name, b[:cut]); want != got {
		return fmt.Errorf("checksum is %08x, the bytes give %08x: the snapshot is damaged or another one's", want, got)
	}
	if !bytes.HasPrefix(b, snapshotHead) {
		return fmt.Errorf("the snapshot is not of format %d", snapshotFormat)
	}
	return Unpack(b[len(snapshotHead):cut], v)
}

// Pack returns v, a pointer to a struct, as a msgpack map of its exported fields, which are
// named by their json tags.
func Pack(v any) ([]byte, error) { return codec.Marshal(v) }

// Unpack reads what Pack has written into v, a pointer to a struct. Times are in UTC. A field
// that v does not have is an error. After an error v may be partly written. It does not panic,
// whatever b is.
func Unpack(b []byte, v any) error { return codec.Unmarshal(b, v, true) }

// UnpackKnown is like Unpack, but ignores fields that v does not have. It is for messages
// that a newer version may have written.
func UnpackKnown(b []byte, v any) error { return codec.Unmarshal(b, v, false) }
