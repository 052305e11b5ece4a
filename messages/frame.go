package messages

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// FrameFormat is the frame format that this version writes, and beside that of
// sealed frames the newest that it reads.
const FrameFormat = 1

// FrameID names a frame: a ULID.
type FrameID string

// Digest is the SHA-256 of a frame's bytes, in hex. It chains an agent's
// frames: each names the one before it.
type Digest string

// DigestOf is the digest of a frame's bytes, or of any others.
func DigestOf(b []byte) Digest {
	sum := sha256.Sum256(b)
	return digestText(sum[:])
}

// digestText is a digest as it is written.
func digestText(sum []byte) Digest {
	var space [2 * sha256.Size]byte
	return Digest(hex.AppendEncode(space[:0], sum))
}

// Cause is what brought a frame about.
type Cause struct {
	// Type is a command's type, or one of effect, takeover.
	Type string `json:"type"`
	// ID is the command's id, or the call's.
	ID string `json:"id,omitempty"`
	// Digest is that of the command's content, as [CommandDigest] returns it. Empty for
	// effects.
	Digest string `json:"digest,omitempty"`
	// By is the person who asked. Empty: no one is named.
	By string `json:"by,omitempty"`
	// Door is where it came in: in, ctl, prompt, client. Empty for effects.
	Door string `json:"door,omitempty"`
	// Authenticated reports whether a login proves By; if not, it is the sender's word.
	Authenticated bool `json:"authenticated,omitempty"`
	// Account is the NATS account of the sender, as its server says. Empty: it did not.
	Account string `json:"account,omitempty"`
	// Reason is the person's own, for commands that carry one.
	Reason string `json:"reason,omitempty"`
}

// Frame is one commit: events of one agent that are seen together or not at
// all. It is stored as one msgpack map:
//
//	f    format version           e    owner epoch
//	i    frame id (ULID)          n    number of the first event
//	p    id of the previous frame d    digest of the previous frame (32 bytes)
//	t    time, ns since 1970      c    cause
//	w    trace context (W3C)      k    id of the key events are sealed with
//	s    sealed cause, where c leaves something out
//	ev   events: [type, schema version, data] each; in format 2 data is sealed
//	sum  CRC-32C of the agent's full address and all bytes before this entry
//
// The entry sum comes last and is always 9 bytes long; fields may be added
// before it.
type Frame struct {
	ID    FrameID
	Epoch Epoch
	First EventNumber // number of Events[0]
	// Prev and PrevDigest name the agent's frame before this one; empty for
	// its first.
	Prev       FrameID
	PrevDigest Digest
	Time       time.Time
	Cause      Cause
	Trace      string
	KeyID      string
	Events     []Event

	cause []byte // sealed; nil: Cause is all there is
}

// Last is the number of the frame's last event.
func (f *Frame) Last() EventNumber { return f.First + EventNumber(len(f.Events)) - 1 }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumEntry is the frame's last entry without its four bytes of checksum.
var sumEntry = []byte{0xa3, 's', 'u', 'm', 0xce}

const sumSize = 9

func checksum(a AgentID, b []byte) uint32 {
	var space [128]byte
	return crc32.Update(crc32.Checksum(append(space[:0], a.Full()...), castagnoli), castagnoli, b)
}

// EncodeFrame writes f as it is stored for agent a. One that was read sealed, and
// not opened since, is written as it was.
func EncodeFrame(a AgentID, f *Frame) ([]byte, error) {
	if f.Sealed() {
		return encodeFrame(a, f, sealedFormat)
	}
	return encodeFrame(a, f, FrameFormat)
}

func encodeFrame(a AgentID, f *Frame, format int) ([]byte, error) {
	if len(f.Events) == 0 || f.First == 0 {
		return nil, errors.New("a frame needs an event and the number of its first")
	}
	prev, err := hex.DecodeString(string(f.PrevDigest))
	if err != nil {
		return nil, fmt.Errorf("digest of the previous frame: %w", err)
	}
	var buf bytes.Buffer
	buf.Grow(1024) // most frames fit
	w := frameWriter{e: msgpack.GetEncoder(), format: format}
	defer msgpack.PutEncoder(w.e)
	w.e.Reset(&buf)
	w.e.SetCustomStructTag("json")
	w.e.UseCompactInts(true)

	w.head(f, prev)
	w.events(f.Events)
	if w.err != nil {
		return nil, fmt.Errorf("encode frame %s: %w", f.ID, w.err)
	}
	sum := checksum(a, buf.Bytes())
	buf.Write(sumEntry)
	return binary.BigEndian.AppendUint32(buf.Bytes(), sum), nil
}

type frameWriter struct {
	e      *msgpack.Encoder
	format int
	err    error
}

func (w *frameWriter) do(err error) {
	if w.err == nil {
		w.err = err
	}
}

// head writes every entry before the events.
func (w *frameWriter) head(f *Frame, prev []byte) {
	size := 7 // f i e n t ev sum
	for _, present := range []bool{f.Prev != "", f.Cause != Cause{}, f.Trace != "", f.KeyID != "", f.cause != nil} {
		if present {
			size++
		}
	}
	if f.Prev != "" {
		size++ // d
	}
	w.do(w.e.EncodeMapLen(size))
	w.number("f", uint64(w.format))
	w.text("i", string(f.ID))
	w.number("e", uint64(f.Epoch))
	w.number("n", uint64(f.First))
	if f.Prev != "" {
		w.text("p", string(f.Prev))
		w.do(w.e.EncodeString("d"))
		w.do(w.e.EncodeBytes(prev))
	}
	w.do(w.e.EncodeString("t"))
	w.do(w.e.EncodeInt(f.Time.UnixNano()))
	if f.Cause != (Cause{}) {
		w.do(w.e.EncodeString("c"))
		w.do(w.e.Encode(&f.Cause))
	}
	if f.Trace != "" {
		w.text("w", f.Trace)
	}
	if f.KeyID != "" {
		w.text("k", f.KeyID)
	}
	if f.cause != nil {
		w.do(w.e.EncodeString("s"))
		w.do(w.e.EncodeBytes(f.cause))
	}
}

func (w *frameWriter) events(events []Event) {
	w.do(w.e.EncodeString("ev"))
	w.do(w.e.EncodeArrayLen(len(events)))
	for _, ev := range events {
		s, ok := eventsByType[ev.EventType()]
		if !ok {
			w.do(fmt.Errorf("event type %q has no schema", ev.EventType()))
			return
		}
		w.do(w.e.EncodeArrayLen(3))
		w.do(w.e.EncodeString(ev.EventType()))
		if sealed, ok := ev.(SealedEvent); ok {
			w.sealed(sealed)
			continue
		}
		w.do(w.e.EncodeInt(int64(s.version())))
		w.do(w.e.Encode(ev))
	}
}

func (w *frameWriter) sealed(ev SealedEvent) {
	if w.format != sealedFormat {
		w.do(fmt.Errorf("event type %q is sealed", ev.Type))
	}
	w.do(w.e.EncodeInt(int64(ev.Version)))
	w.do(w.e.EncodeBytes(ev.Data))
}

func (w *frameWriter) number(key string, n uint64) {
	w.do(w.e.EncodeString(key))
	w.do(w.e.EncodeUint(n))
}

func (w *frameWriter) text(key, text string) {
	w.do(w.e.EncodeString(key))
	w.do(w.e.EncodeString(text))
}
