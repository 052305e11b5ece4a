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

// FrameFormat is the newest frame format this version reads and the one it writes.
const FrameFormat = 1

// FrameID names a frame: a ULID.
type FrameID string

// Digest is the SHA-256 of a frame's bytes, in hex. It chains an agent's
// frames: each names the one before it.
type Digest string

// DigestOf is the digest of a frame's bytes, or of any others.
func DigestOf(b []byte) Digest {
	sum := sha256.Sum256(b)
	return Digest(hex.EncodeToString(sum[:]))
}

// Cause is what brought a frame about.
type Cause struct {
	// Type is a command's type, or one of effect, takeover.
	Type string `json:"type"`
	// ID is the command's id, or the call's.
	ID string `json:"id,omitempty"`
	// By is who asked, as far as the door knows.
	By string `json:"by,omitempty"`
	// Door is where it came in: in, ctl, prompt, client. Empty for effects.
	Door string `json:"door,omitempty"`
	// Authenticated says that the door knows By to be true.
	Authenticated bool `json:"authenticated,omitempty"`
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
//	ev   events: [type, schema version, data] each
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
}

// Last is the number of the frame's last event.
func (f *Frame) Last() EventNumber { return f.First + EventNumber(len(f.Events)) - 1 }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumEntry is the frame's last entry without its four bytes of checksum.
var sumEntry = []byte{0xa3, 's', 'u', 'm', 0xce}

const sumSize = 9

func checksum(a AgentID, b []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(a.Full()), castagnoli), castagnoli, b)
}

// EncodeFrame writes f as it is stored for agent a.
func EncodeFrame(a AgentID, f *Frame) ([]byte, error) {
	if len(f.Events) == 0 || f.First == 0 {
		return nil, errors.New("a frame needs an event and the number of its first")
	}
	prev, err := hex.DecodeString(string(f.PrevDigest))
	if err != nil {
		return nil, fmt.Errorf("digest of the previous frame: %w", err)
	}
	var buf bytes.Buffer
	buf.Grow(512)
	w := frameWriter{e: msgpack.GetEncoder()}
	defer msgpack.PutEncoder(w.e)
	w.e.Reset(&buf)
	w.e.SetCustomStructTag("json")
	w.e.UseCompactInts(true)

	size := 7 // f i e n t ev sum
	for _, present := range []bool{f.Prev != "", f.Cause != Cause{}, f.Trace != "", f.KeyID != ""} {
		if present {
			size++
		}
	}
	if f.Prev != "" {
		size++ // d
	}
	w.do(w.e.EncodeMapLen(size))
	w.entry("f", FrameFormat)
	w.entry("i", string(f.ID))
	w.entry("e", uint64(f.Epoch))
	w.entry("n", uint64(f.First))
	if f.Prev != "" {
		w.entry("p", string(f.Prev))
		w.entry("d", prev)
	}
	w.entry("t", f.Time.UnixNano())
	if f.Cause != (Cause{}) {
		w.entry("c", f.Cause)
	}
	if f.Trace != "" {
		w.entry("w", f.Trace)
	}
	if f.KeyID != "" {
		w.entry("k", f.KeyID)
	}
	w.do(w.e.EncodeString("ev"))
	w.do(w.e.EncodeArrayLen(len(f.Events)))
	for _, ev := range f.Events {
		s, ok := schemas[ev.EventType()]
		if !ok {
			return nil, fmt.Errorf("event type %q has no schema", ev.EventType())
		}
		w.do(w.e.EncodeArrayLen(3))
		w.do(w.e.EncodeString(ev.EventType()))
		w.do(w.e.EncodeInt(int64(s.version())))
		w.do(w.e.Encode(ev))
	}
	if w.err != nil {
		return nil, fmt.Errorf("encode frame %s: %w", f.ID, w.err)
	}
	sum := checksum(a, buf.Bytes())
	buf.Write(sumEntry)
	return binary.BigEndian.AppendUint32(buf.Bytes(), sum), nil
}

type frameWriter struct {
	e   *msgpack.Encoder
	err error
}

func (w *frameWriter) do(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *frameWriter) entry(key string, v any) {
	w.do(w.e.EncodeString(key))
	w.do(w.e.Encode(v))
}

// ErrNewer is wrapped by the errors for frames and events of a newer version.
var ErrNewer = errors.New("written by a newer version of reprise")

// DecodeFrame reads a stored frame of agent a. It checks the checksum first;
// the error says what is wrong and never comes with a frame.
func DecodeFrame(a AgentID, b []byte) (*Frame, error) {
	cut := len(b) - sumSize
	if cut < 1 || !bytes.Equal(b[cut:len(b)-4], sumEntry) {
		return nil, errors.New("the frame has no checksum at its end: it is cut off or damaged")
	}
	if want, got := binary.BigEndian.Uint32(b[len(b)-4:]), checksum(a, b[:cut]); want != got {
		return nil, fmt.Errorf("checksum is %08x, the bytes give %08x: the frame is damaged or another agent's", want, got)
	}
	if err := checkMsgpack(b); err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	d := decoder(b)
	defer msgpack.PutDecoder(d)
	f, err := readFrame(d)
	if err != nil {
		return nil, err
	}
	if len(f.Events) == 0 || f.First == 0 {
		return nil, errors.New("the frame has no events or no number")
	}
	return f, nil
}

func readFrame(d *msgpack.Decoder) (*Frame, error) {
	entries, err := d.DecodeMapLen()
	if err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	f := &Frame{}
	for range entries {
		key, err := d.DecodeString()
		if err != nil {
			return nil, fmt.Errorf("frame: %w", err)
		}
		if err := f.readEntry(d, key); err != nil {
			return nil, fmt.Errorf("frame entry %q: %w", key, err)
		}
	}
	return f, nil
}

func (f *Frame) readEntry(d *msgpack.Decoder, key string) (err error) {
	switch key {
	case "f":
		var format int
		if format, err = d.DecodeInt(); err == nil && (format > FrameFormat || format < 1) {
			return fmt.Errorf("format %d, this version reads up to %d: %w", format, FrameFormat, ErrNewer)
		}
	case "i":
		err = d.Decode((*string)(&f.ID))
	case "e":
		err = d.Decode((*uint64)(&f.Epoch))
	case "n":
		err = d.Decode((*uint64)(&f.First))
	case "p":
		err = d.Decode((*string)(&f.Prev))
	case "d":
		var raw []byte
		raw, err = d.DecodeBytes()
		f.PrevDigest = Digest(hex.EncodeToString(raw))
	case "t":
		var ns int64
		ns, err = d.DecodeInt64()
		f.Time = time.Unix(0, ns).UTC()
	case "c":
		err = d.Decode(&f.Cause)
	case "w":
		err = d.Decode(&f.Trace)
	case "k":
		err = d.Decode(&f.KeyID)
	case "ev":
		err = f.readEvents(d)
	default:
		err = d.Skip()
	}
	return err
}

func (f *Frame) readEvents(d *msgpack.Decoder) error {
	n, err := d.DecodeArrayLen()
	if err != nil {
		return err
	}
	for i := range n {
		fields, err := d.DecodeArrayLen()
		if err != nil {
			return err
		}
		if fields != 3 {
			return fmt.Errorf("event %d has %d fields, not type, version and data", i, fields)
		}
		name, err := d.DecodeString()
		if err != nil {
			return err
		}
		version, err := d.DecodeInt()
		if err != nil {
			return err
		}
		ev, err := readEvent(d, name, version)
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		f.Events = append(f.Events, ev)
	}
	return nil
}

// readEvent decodes in place when the stored schema is the newest.
func readEvent(d *msgpack.Decoder, name string, version int) (Event, error) {
	if s, ok := schemas[name]; ok && version == s.version() {
		return s.decode(d)
	}
	raw, err := d.DecodeRaw()
	if err != nil {
		return nil, err
	}
	ev, err := decodeEvent(name, version, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNewer, err)
	}
	return ev, nil
}
