package messages

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/reprise-dev/reprise/messages/internal/codec"
)

func init() {
	for _, e := range eventTable {
		codec.Register(e.typ)
	}
	for _, e := range commandTable {
		codec.Register(reflect.TypeOf(e.zero))
	}
	codec.Register(reflect.TypeFor[storedFrame]())
}

// storedFrame is a frame as it is stored: a msgpack map with these entries in this order.
// Entries may be added before the last one, which always has 9 bytes.
type storedFrame struct {
	Format          int          `json:"f"`
	ID              FrameID      `json:"i"`
	Epoch           Epoch        `json:"e"`
	First           EventNumber  `json:"n"`
	Prev            FrameID      `json:"p"`
	PrevDigest      []byte       `json:"d"`
	Time            int64        `json:"t"` // ns since 1970
	Cause           Cause        `json:"c"`
	Trace           TraceContext `json:"w,omitempty"`
	KeyID           string       `json:"k,omitempty"` // set if the events are encrypted
	EncryptedOrigin []byte       `json:"s,omitempty"` // the whole cause, if it has more than c shows, and the trace context
	Events          storedEvents `json:"ev"`
	Sum             storedSum    `json:"sum"` // of the agent's full address and all bytes before this entry
}

// storedSum is a CRC-32C, stored in 4 bytes whatever its value is.
type storedSum uint32

// EncodeMsgpack writes the checksum.
func (n storedSum) EncodeMsgpack(e *msgpack.Encoder) error { return e.EncodeUint32(uint32(n)) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumEntry is the last entry without the four bytes of the checksum.
var sumEntry = []byte{0xa3, 's', 'u', 'm', 0xce}

const sumSize = 9

func checksum(a AgentID, b []byte) uint32 {
	var buf [128]byte
	return crc32.Update(crc32.Checksum(a.appendFull(buf[:0]), castagnoli), castagnoli, b)
}

// EncodeFrame returns f as it is stored for agent a. Encrypted events stay encrypted.
func EncodeFrame(a AgentID, f *Frame) ([]byte, error) {
	if len(f.Events) == 0 || f.First == 0 {
		return nil, errors.New("a frame needs an event and the number of its first")
	}
	prev, err := hex.DecodeString(string(f.PrevDigest))
	if err != nil {
		return nil, fmt.Errorf("digest of the previous frame: %w", err)
	}
	b, err := Pack(&storedFrame{
		Format: FrameFormat, ID: f.ID, Epoch: f.Epoch, First: f.First, Prev: f.Prev, PrevDigest: prev,
		Time: f.Time.UnixNano(), Cause: f.Cause, Trace: f.Trace, KeyID: f.KeyID, EncryptedOrigin: f.encryptedOrigin, Events: f.Events,
	})
	if err != nil {
		return nil, fmt.Errorf("encode frame %s: %w", f.ID, err)
	}
	sum := b[len(b)-4:]
	binary.BigEndian.PutUint32(sum, checksum(a, b[:len(b)-sumSize]))
	return b, nil
}

// storedEvents are events as they are stored: [type, schema version, data] each. Data is
// a map, or a byte string if it is encrypted.
type storedEvents []Event

// EncodeMsgpack writes the events.
func (list storedEvents) EncodeMsgpack(e *msgpack.Encoder) error {
	if err := e.EncodeArrayLen(len(list)); err != nil {
		return err
	}
	for _, ev := range list {
		if err := encodeEvent(e, ev); err != nil {
			return fmt.Errorf("event type %q: %w", ev.EventType(), err)
		}
	}
	return nil
}

func encodeEvent(e *msgpack.Encoder, ev Event) error {
	entry := eventsByType[ev.EventType()]
	if entry == nil {
		return errors.New("it has no schema")
	}
	version, data := entry.version(), any(ev)
	if encrypted, ok := ev.(EncryptedEvent); ok {
		version, data = encrypted.Version, encrypted.Data
	}
	return errors.Join(e.EncodeArrayLen(3), e.EncodeString(ev.EventType()), e.EncodeInt(int64(version)), e.Encode(data))
}
