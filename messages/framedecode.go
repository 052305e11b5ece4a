package messages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages/internal/codec"
)

// ErrNewer is wrapped by the errors for frames and events of a newer version.
var ErrNewer = errors.New("written by a newer version of reprise")

// DecodeFrame reads a stored frame of agent a. It verifies the checksum first. After an
// error, which names what is wrong, it returns no frame.
func DecodeFrame(a AgentID, b []byte) (*Frame, error) {
	cut := len(b) - sumSize
	if cut < 1 || !bytes.Equal(b[cut:len(b)-4], sumEntry) {
		return nil, errors.New("the frame has no checksum at its end: it is cut off or damaged")
	}
	if want, got := binary.BigEndian.Uint32(b[len(b)-4:]), checksum(a, b[:cut]); want != got {
		return nil, fmt.Errorf("checksum is %08x, the bytes give %08x: the frame is damaged or another agent's", want, got)
	}
	f := &Frame{}
	if err := codec.Decode(b, f.read); err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	if len(f.Events) == 0 || f.First == 0 {
		return nil, errors.New("the frame has no events or no number")
	}
	if f.Last() < f.First {
		return nil, fmt.Errorf("the frame begins with event %d: its last one has no number", f.First)
	}
	return f, nil
}

func (f *Frame) read(s *codec.Source) error {
	entries, err := s.Map()
	if err != nil {
		return err
	}
	format := 0
	for range entries {
		key, err := s.Text()
		if err != nil {
			return fmt.Errorf("the name of an entry: %w", err)
		}
		if err := f.readEntry(s, key, &format); err != nil {
			return fmt.Errorf("entry %q: %w", key, err)
		}
	}
	switch {
	case format == 0:
		return errors.New("it has no format version")
	case f.Encrypted() && f.KeyID == "":
		return errors.New("its events are encrypted and no key is named")
	}
	return nil
}

func (f *Frame) readEntry(s *codec.Source, key []byte, format *int) (err error) {
	switch string(key) {
	case "f":
		var n int64
		if n, err = s.Int(); err == nil {
			*format = int(n)
			err = checkFormat(*format)
		}
	case "i":
		err = readText(s, &f.ID)
	case "e":
		var n int64
		n, err = s.Int()
		f.Epoch = Epoch(n)
	case "n":
		var n int64
		n, err = s.Int()
		f.First = EventNumber(n)
	case "p":
		err = readText(s, &f.Prev)
	case "d":
		var raw []byte
		raw, err = s.Text()
		f.PrevDigest = digestText(raw)
	case "t":
		var n int64
		n, err = s.Int()
		f.Time = time.Unix(0, n).UTC()
	case "c":
		err = s.Value(reflect.ValueOf(&f.Cause).Elem())
	case "w":
		err = readText(s, &f.Trace)
	case "k":
		err = readText(s, &f.KeyID)
	case "s":
		f.encryptedOrigin, err = s.Bytes()
	case "ev":
		err = f.readEvents(s)
	default:
		_, err = s.Raw()
	}
	return err
}

func readText[S ~string](s *codec.Source, to *S) error {
	text, err := s.String()
	*to = S(text)
	return err
}

func checkFormat(format int) error {
	switch {
	case format > FrameFormat:
		return fmt.Errorf("format %d, this version reads up to %d: %w", format, FrameFormat, ErrNewer)
	case format < 1:
		return fmt.Errorf("format %d: formats begin at 1", format)
	}
	return nil
}

func (f *Frame) readEvents(s *codec.Source) error {
	n, err := s.List()
	if err != nil {
		return err
	}
	f.Events = slices.Grow(f.Events, max(n, 0))
	for i := range n {
		ev, err := readEvent(s)
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		f.Events = append(f.Events, ev)
	}
	return nil
}

// readEvent reads type, version and data of an event.
func readEvent(s *codec.Source) (Event, error) {
	fields, err := s.List()
	if err != nil {
		return nil, err
	}
	if fields != 3 {
		return nil, fmt.Errorf("it has %d fields, not type, version and data", fields)
	}
	typ, err := s.Text()
	if err != nil {
		return nil, fmt.Errorf("its type: %w", err)
	}
	version, err := s.Int()
	if err != nil {
		return nil, fmt.Errorf("its version: %w", err)
	}
	if s.IsBytes() {
		data, err := s.Bytes()
		return EncryptedEvent{Type: string(typ), Version: int(version), Data: data}, err
	}
	if e := eventsByType[string(typ)]; e != nil && int(version) == e.version() {
		return e.decode(s)
	}
	data, err := s.Raw()
	if err != nil {
		return nil, err
	}
	return decodeEvent(string(typ), int(version), data)
}
