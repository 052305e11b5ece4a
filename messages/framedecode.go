package messages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"
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
	r := readerOf(b)
	defer r.release()
	f, err := readFrame(r)
	if err != nil {
		return nil, err
	}
	if len(f.Events) == 0 || f.First == 0 {
		return nil, errors.New("the frame has no events or no number")
	}
	return f, nil
}

func readFrame(r *reader) (*Frame, error) {
	entries, ok := r.mapLen()
	if !ok {
		return nil, errors.New("frame: it is no map")
	}
	f, format := &Frame{}, 0
	for range entries {
		key, ok := r.bytes()
		if !ok && !r.isNil() {
			return nil, errors.New("frame: an entry has no name")
		}
		if err := f.readEntry(r, key, &format); err != nil {
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

func (f *Frame) readEntry(r *reader, key []byte, format *int) (err error) {
	var n int64
	switch string(key) {
	case "f":
		if n, err = r.wantNumber(); err != nil {
			return err
		}
		return f.readFormat(n, format)
	case "i":
		f.ID, err = wantText[FrameID](r)
	case "e":
		n, err = r.wantNumber()
		f.Epoch = Epoch(n)
	case "n":
		n, err = r.wantNumber()
		f.First = EventNumber(n)
	case "p":
		f.Prev, err = wantText[FrameID](r)
	case "d":
		var raw []byte
		raw, err = r.wantBytes()
		f.PrevDigest = digestText(raw)
	case "t":
		n, err = r.wantNumber()
		f.Time = time.Unix(0, n).UTC()
	case "c":
		err = readCause(r, &f.Cause)
	case "w":
		f.Trace, err = wantText[string](r)
	case "k":
		f.KeyID, err = wantText[string](r)
	case "s":
		f.cause, err = r.wantBytes()
		f.cause = bytes.Clone(f.cause)
	case "ev":
		read := readEvent
		if *format == sealedFormat && f.KeyID != "" {
			read = readSealed
		}
		err = f.readEvents(r, read)
	default:
		r.skip()
	}
	return err
}

func (f *Frame) readFormat(n int64, format *int) error {
	*format = int(n)
	switch {
	case *format > sealedFormat:
		return fmt.Errorf("format %d, this version reads up to %d: %w", *format, sealedFormat, ErrNewer)
	case *format < 1:
		return fmt.Errorf("format %d: formats begin at 1", *format)
	}
	return nil
}

func (f *Frame) readEvents(r *reader, read func(*reader, string, int) (Event, error)) error {
	n, ok := r.arrayLen()
	if !ok && !r.isNil() {
		return errors.New("it is no list")
	}
	f.Events = slices.Grow(f.Events, n)
	for i := range n {
		if fields, _ := r.arrayLen(); fields != 3 {
			return fmt.Errorf("event %d has %d fields, not type, version and data", i, fields)
		}
		name, err := wantText[string](r)
		if err != nil {
			return fmt.Errorf("event %d: its type: %w", i, err)
		}
		version, err := r.wantNumber()
		if err != nil {
			return fmt.Errorf("event %d: its version: %w", i, err)
		}
		ev, err := read(r, name, int(version))
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		f.Events = append(f.Events, ev)
	}
	return nil
}

// readSealed keeps the data as it is stored.
func readSealed(r *reader, name string, version int) (Event, error) {
	data, err := r.wantBytes()
	return SealedEvent{Type: name, Version: version, Data: bytes.Clone(data)}, err
}

// readEvent decodes in place when the stored schema is the newest.
func readEvent(r *reader, name string, version int) (Event, error) {
	if s, ok := eventsByType[name]; ok && version == s.version() {
		return s.decode(r)
	}
	return decodeEvent(name, version, r.skip())
}

var causes = sync.OnceValue(func() reading { return readingOf(reflect.TypeFor[Cause]()) })

func readCause(r *reader, c *Cause) error { return causes()(r, reflect.ValueOf(c).Elem()) }

// wantNumber reads what must be a whole number.
func (r *reader) wantNumber() (int64, error) {
	n, ok := r.number()
	if !ok {
		return 0, errors.New("it is no whole number")
	}
	return n, nil
}

// wantBytes reads what must be bytes; they are not copied.
func (r *reader) wantBytes() ([]byte, error) {
	b, ok := r.bytes()
	if !ok {
		return nil, errors.New("it is no text and no bytes")
	}
	return b, nil
}

// wantText reads what must be a text.
func wantText[S ~string](r *reader) (S, error) {
	b, err := r.wantBytes()
	return S(r.remembered(b)), err
}
