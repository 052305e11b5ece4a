package messages

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/vmihailenco/msgpack/v5"
)

// sealedFormat is the format of frames whose events are sealed: the entry k
// names the key, the data of each event is a sealed byte string, and the entry s
// holds the cause where it tells more than type, id and door.
const sealedFormat = 2

// ErrNoKey is wrapped by the errors for what is sealed with a key that is missing.
var ErrNoKey = errors.New("the key that it is sealed with is missing, and without it what was sealed cannot be read: if there is a copy of the keys, put it back (reprise restore --keys)")

// ErrShredded is wrapped by the errors for what was sealed with a key that is gone
// because its agent has been deleted: as it should be.
var ErrShredded = errors.New("its agent has been deleted since, and its key with it")

// ErrLocked is wrapped by the errors for what is sealed with a key that is there and
// cannot be opened.
var ErrLocked = errors.New("no wrapping key that is given opens it")

// Sealer encrypts what one agent's frames hold, with one key. Equal arguments
// must give equal bytes: a frame that is stored again must be the same one. Safe
// for concurrent use.
type Sealer interface {
	// Seal encrypts plain. What it is about is bound to it and not kept.
	Seal(plain, about []byte) []byte
	// Open is its opposite. It fails for another key, another about, or bytes that
	// were changed.
	Open(sealed, about []byte) ([]byte, error)
}

// SealedEvent is an event whose data cannot be read without its frame's key. No
// fold knows it; see [Frame.Unseal].
type SealedEvent struct {
	Type    string
	Version int
	Data    []byte
}

// EventType is the type of the event that is sealed.
func (e SealedEvent) EventType() string { return e.Type }

// Sealed says that the frame's events are sealed.
func (f *Frame) Sealed() bool {
	if len(f.Events) == 0 {
		return false
	}
	_, sealed := f.Events[0].(SealedEvent)
	return sealed
}

// SealFrame writes f as EncodeFrame does, but for the data of its events and
// the words of its cause, which are sealed. Ids, numbers, times and the types of
// the events stay readable, and so do chain and checksum.
func SealFrame(a AgentID, f *Frame, key string, s Sealer) ([]byte, error) {
	if key == "" {
		return nil, fmt.Errorf("seal frame %s: the key has no id", f.ID)
	}
	sealed := *f
	sealed.KeyID, sealed.cause = key, nil
	sealed.Cause.By, sealed.Cause.Account, sealed.Cause.Reason, sealed.Cause.Digest = "", "", "", ""
	sealed.Events = make([]Event, len(f.Events))
	for i, ev := range f.Events {
		known, ok := eventsByType[ev.EventType()]
		if !ok {
			return nil, fmt.Errorf("event type %q has no schema", ev.EventType())
		}
		data, err := encode(ev)
		if err != nil {
			return nil, fmt.Errorf("encode frame %s: %w", f.ID, err)
		}
		e := SealedEvent{Type: ev.EventType(), Version: known.version()}
		e.Data = s.Seal(data, f.about(a, i, e))
		sealed.Events[i] = e
	}
	if f.Cause.By != "" || f.Cause.Reason != "" || f.Cause.Digest != "" {
		data, err := encode(&f.Cause)
		if err != nil {
			return nil, fmt.Errorf("encode frame %s: %w", f.ID, err)
		}
		sealed.cause = s.Seal(data, f.about(a, -1, SealedEvent{Type: "cause"}))
	}
	return encodeFrame(a, &sealed, sealedFormat)
}

// Unseal gives the frame as it was before it was sealed. The error says what
// cannot be opened.
func (f *Frame) Unseal(a AgentID, s Sealer) (*Frame, error) {
	plain := *f
	plain.cause, plain.Events = nil, make([]Event, len(f.Events))
	for i, ev := range f.Events {
		e, ok := ev.(SealedEvent)
		if !ok {
			return nil, fmt.Errorf("event %d of frame %s is not sealed", f.First+EventNumber(i), f.ID)
		}
		data, err := s.Open(e.Data, f.about(a, i, e))
		if err == nil {
			plain.Events[i], err = decodeEvent(e.Type, e.Version, data)
		}
		if err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", f.First+EventNumber(i), e.Type, err)
		}
	}
	if f.cause == nil {
		return &plain, nil
	}
	data, err := s.Open(f.cause, f.about(a, -1, SealedEvent{Type: "cause"}))
	if err == nil {
		err = unmarshal(data, &plain.Cause, false)
	}
	if err != nil {
		return nil, fmt.Errorf("the cause of frame %s: %w", f.ID, err)
	}
	return &plain, nil
}

// about is what a sealed event is bound to: its agent, frame, place and type.
func (f *Frame) about(a AgentID, i int, e SealedEvent) []byte {
	b := append([]byte(a.Full()), 0)
	b = append(append(b, f.ID...), 0)
	b = strconv.AppendUint(b, uint64(f.First), 10)
	b = strconv.AppendInt(append(b, '+'), int64(i), 10)
	b = append(append(b, 0), e.Type...)
	return strconv.AppendInt(append(b, 0), int64(e.Version), 10)
}

func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := msgpack.GetEncoder()
	defer msgpack.PutEncoder(e)
	e.Reset(&buf)
	e.SetCustomStructTag("json")
	e.UseCompactInts(true)
	err := e.Encode(v)
	return buf.Bytes(), err
}
