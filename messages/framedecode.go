package messages

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

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
	f, format := &Frame{}, 0
	for range entries {
		key, err := d.DecodeString()
		if err != nil {
			return nil, fmt.Errorf("frame: %w", err)
		}
		if err := f.readEntry(d, key, &format); err != nil {
			return nil, fmt.Errorf("frame entry %q: %w", key, err)
		}
	}
	switch {
	case format == 0:
		return nil, errors.New("the frame has no format version")
	case format == sealedFormat && f.KeyID == "":
		return nil, fmt.Errorf("format %d without the id of a key: %w", format, ErrNewer)
	}
	return f, nil
}

func (f *Frame) readEntry(d *msgpack.Decoder, key string, format *int) (err error) {
	switch key {
	case "f":
		switch *format, err = d.DecodeInt(); {
		case err == nil && *format > sealedFormat:
			return fmt.Errorf("format %d, this version reads up to %d: %w", *format, sealedFormat, ErrNewer)
		case err == nil && *format < 1:
			return fmt.Errorf("format %d: formats begin at 1", *format)
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
	case "s":
		f.cause, err = d.DecodeBytes()
	case "ev":
		read := readEvent
		if *format == sealedFormat && f.KeyID != "" {
			read = readSealed
		}
		err = f.readEvents(d, read)
	default:
		err = d.Skip()
	}
	return err
}

func (f *Frame) readEvents(d *msgpack.Decoder, read func(*msgpack.Decoder, string, int) (Event, error)) error {
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
		ev, err := read(d, name, version)
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		f.Events = append(f.Events, ev)
	}
	return nil
}

// readSealed keeps the data as it is stored.
func readSealed(d *msgpack.Decoder, name string, version int) (Event, error) {
	data, err := d.DecodeBytes()
	return SealedEvent{Type: name, Version: version, Data: data}, err
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
	return decodeEvent(name, version, raw)
}
