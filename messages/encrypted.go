package messages

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrNoKey is wrapped by the errors for what is encrypted with a key that is missing.
var ErrNoKey = errors.New("the key that it is encrypted with is missing, and without it what was encrypted cannot be read: if there is a copy of the keys, put it back (`reprise restore --keys`)")

// ErrShredded is wrapped by the errors for what was encrypted with a key that was removed
// because its agent has been deleted. It reports no damage.
var ErrShredded = errors.New("its agent has been deleted since, and its key with it")

// ErrLocked is wrapped by the errors for what is encrypted with a key that exists and
// cannot be unwrapped.
var ErrLocked = errors.New("no wrapping key that is given opens it")

// Cipher encrypts the frames of one agent with one key. Equal arguments must yield equal
// bytes, because a frame that is stored again must be the same one. Safe for concurrent
// use.
type Cipher interface {
	// Encrypt encrypts plain. The result is bound to context, and does not hold it.
	Encrypt(plain, context []byte) []byte
	// Decrypt returns what was encrypted. It fails for another key, another context, or
	// bytes that were changed.
	Decrypt(encrypted, context []byte) ([]byte, error)
}

// EncryptedEvent is an event whose data cannot be read without its frame's key. No
// projection applies it; see [Frame.Decrypt].
type EncryptedEvent struct {
	Type    string
	Version int
	Data    []byte
}

// EventType returns the type of the event that is encrypted.
func (e EncryptedEvent) EventType() string { return e.Type }

// Encrypted reports whether the frame's events are encrypted.
func (f *Frame) Encrypted() bool {
	if len(f.Events) == 0 {
		return false
	}
	_, encrypted := f.Events[0].(EncryptedEvent)
	return encrypted
}

// encryptedOrigin is what is encrypted of a frame beside its events.
type encryptedOrigin struct {
	Cause Cause        `json:"c"`
	Trace TraceContext `json:"w,omitempty"`
}

// EncryptFrame returns f as EncodeFrame does, with the data of its events, the texts of its cause
// and its trace context encrypted. Ids, numbers, times, the types of the events, the chain and the
// checksum stay readable.
func EncryptFrame(a AgentID, f *Frame, key string, c Cipher) ([]byte, error) {
	if key == "" {
		return nil, fmt.Errorf("encrypt frame %s: the key has no id", f.ID)
	}
	encrypted := *f
	encrypted.KeyID, encrypted.encryptedOrigin, encrypted.Trace = key, nil, ""
	encrypted.Cause.By, encrypted.Cause.Account, encrypted.Cause.Reason, encrypted.Cause.Digest = "", "", "", ""
	encrypted.Events = make([]Event, len(f.Events))
	for i, ev := range f.Events {
		known, ok := eventsByType[ev.EventType()]
		if !ok {
			return nil, fmt.Errorf("event type %q has no schema", ev.EventType())
		}
		data, err := Pack(ev)
		if err != nil {
			return nil, fmt.Errorf("encode frame %s: %w", f.ID, err)
		}
		e := EncryptedEvent{Type: ev.EventType(), Version: known.version()}
		e.Data = c.Encrypt(data, f.context(a, i, e))
		encrypted.Events[i] = e
	}
	if f.Cause.By != "" || f.Cause.Reason != "" || f.Cause.Digest != "" || f.Trace != "" {
		data, err := Pack(&encryptedOrigin{f.Cause, f.Trace})
		if err != nil {
			return nil, fmt.Errorf("encode frame %s: %w", f.ID, err)
		}
		encrypted.encryptedOrigin = c.Encrypt(data, f.context(a, -1, EncryptedEvent{Type: "cause"}))
	}
	return EncodeFrame(a, &encrypted)
}

// Decrypt returns the frame as it was before EncryptFrame. The error names the event that
// cannot be decrypted.
func (f *Frame) Decrypt(a AgentID, c Cipher) (*Frame, error) {
	plain := *f
	plain.encryptedOrigin, plain.Events = nil, make([]Event, len(f.Events))
	for i, ev := range f.Events {
		e, ok := ev.(EncryptedEvent)
		if !ok {
			return nil, fmt.Errorf("event %d of frame %s is not encrypted", f.First+EventNumber(i), f.ID)
		}
		data, err := c.Decrypt(e.Data, f.context(a, i, e))
		if err == nil {
			plain.Events[i], err = decodeEvent(e.Type, e.Version, data)
		}
		if err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", f.First+EventNumber(i), e.Type, err)
		}
	}
	if f.encryptedOrigin == nil {
		return &plain, nil
	}
	var origin encryptedOrigin
	data, err := c.Decrypt(f.encryptedOrigin, f.context(a, -1, EncryptedEvent{Type: "cause"}))
	if err == nil {
		err = UnpackKnown(data, &origin)
	}
	if err != nil {
		return nil, fmt.Errorf("the cause of frame %s: %w", f.ID, err)
	}
	plain.Cause, plain.Trace = origin.Cause, origin.Trace
	return &plain, nil
}

// context is what an encrypted event is bound to: its agent, frame, position and type.
func (f *Frame) context(a AgentID, i int, e EncryptedEvent) []byte {
	b := append([]byte(a.Full()), 0)
	b = append(append(b, f.ID...), 0)
	b = strconv.AppendUint(b, uint64(f.First), 10)
	b = strconv.AppendInt(append(b, '+'), int64(i), 10)
	b = append(append(b, 0), e.Type...)
	return strconv.AppendInt(append(b, 0), int64(e.Version), 10)
}
