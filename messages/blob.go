package messages

import (
	"encoding/json"
	"slices"
)

// Blob refers to a payload that is stored outside the log because it is too large for a
// frame. It belongs to one agent. The field of the event or item whose payload it is, is
// empty.
type Blob struct {
	// SHA256 is the hash of the payload, in hex.
	SHA256 Digest `json:"sha256"`
	// Size is the size of the payload in bytes.
	Size int64 `json:"size"`
	// Stored is the SHA-256 of the encrypted bytes. Empty: the blob is not encrypted, and
	// stored under SHA256.
	Stored Digest `json:"stored,omitempty"`
}

// Kept returns the hash under which a store lists and removes the blob.
func (b Blob) Kept() Digest {
	if b.Stored != "" {
		return b.Stored
	}
	return b.SHA256
}

// BlobForm is the format of a blob's bytes.
type BlobForm int

// The forms.
const (
	BlobText   BlobForm = iota // UTF-8
	BlobImage                  // the address of an image, usually a data URL
	BlobJSON                   // one JSON value on one line
	BlobFrames                 // the frames that come before the event
)

// BlobFill returns the bytes of a blob, or a replacement for them.
type BlobFill func(b Blob, form BlobForm) (string, error)

// visit is called for each payload of a message that is stored as a blob, with the field
// that the payload belongs to, the reference and the form. The field is nil if another
// field of the event has the same payload. A visit may change field and reference.
type visit func(payload *string, b **Blob, form BlobForm) error

// offloaded is implemented by each event that may refer to blobs. visited returns the event
// as v has changed it, and leaves the receiver's slices and pointers unchanged. It stops at
// the first error of v.
type offloaded interface {
	visited(v visit) (Event, error)
}

func (e InputAccepted) visited(v visit) (_ Event, err error) {
	e.Content, err = e.Content.visited(v)
	return e, err
}

func (e ModelRequested) visited(v visit) (Event, error) {
	err := v.raw(&e.Rewritten, &e.RewrittenBlob)
	return e, err
}

func (e ModelCompleted) visited(v visit) (_ Event, err error) {
	if slices.ContainsFunc(e.Items, func(it Item) bool { return it.HasBlob() }) {
		e.Items = slices.Clone(e.Items)
	}
	for i, it := range e.Items {
		if !it.HasBlob() {
			continue
		}
		if e.Items[i], err = it.visited(v); err != nil {
			return e, err
		}
	}
	return e, v.one(nil, &e.Blob, BlobText)
}

func (e ToolCompleted) visited(v visit) (Event, error) {
	err := v.one(&e.Output, &e.Blob, BlobText)
	return e, err
}

func (e TurnCompleted) visited(v visit) (Event, error) {
	err := v.one(&e.Output, &e.Blob, BlobText)
	return e, err
}

func (e TimerSet) visited(v visit) (_ Event, err error) {
	if e.Input != nil {
		in := *e.Input
		in.Content, err = in.Content.visited(v)
		e.Input = &in
	}
	return e, err
}

func (it Item) visited(v visit) (Item, error) {
	var err error
	if it.Content, err = it.Content.visited(v); err != nil {
		return it, err
	}
	if err = v.one(&it.Output, &it.Blob, BlobText); err != nil {
		return it, err
	}
	err = v.raw(&it.Raw, &it.RawBlob)
	return it, err
}

func (c Content) visited(v visit) (Content, error) {
	if !c.HasBlob() {
		return c, nil
	}
	c = slices.Clone(c)
	for i := range c {
		payload, form := &c[i].Text, BlobText
		if c[i].Type != "text" {
			payload, form = &c[i].ImageURL, BlobImage
		}
		if err := v.one(payload, &c[i].Blob, form); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (v visit) one(payload *string, b **Blob, form BlobForm) error {
	if *b == nil {
		return nil
	}
	return v(payload, b, form)
}

// raw is one for a payload that is JSON.
func (v visit) raw(payload *json.RawMessage, b **Blob) error {
	if *b == nil {
		return nil
	}
	text := string(*payload)
	err := v(&text, b, BlobJSON)
	if text != string(*payload) {
		*payload = json.RawMessage(text)
	}
	return err
}

// filling returns a visit that replaces each payload by what fill returns.
func filling(fill BlobFill) visit {
	return func(payload *string, b **Blob, form BlobForm) (err error) {
		if payload != nil {
			*payload, err = fill(**b, form)
		}
		return err
	}
}

func removed(_ *string, b **Blob, _ BlobForm) error {
	*b = nil
	return nil
}

// Whole returns the event with each payload that is stored as a blob replaced by what fill
// returns. The references stay. It stops at the first error, and leaves the slices and
// pointers of ev unchanged.
func Whole(ev Event, fill BlobFill) (Event, error) {
	if e, ok := ev.(offloaded); ok {
		return e.visited(filling(fill))
	}
	return ev, nil
}

// ReplaceBlobs returns the event with each reference to a blob replaced by what with returns.
// It stops at the first error, and leaves the slices and pointers of ev unchanged.
func ReplaceBlobs(ev Event, with func(Blob, BlobForm) (Blob, error)) (Event, error) {
	e, ok := ev.(offloaded)
	if !ok {
		return ev, nil
	}
	return e.visited(func(_ *string, b **Blob, form BlobForm) error {
		replaced, err := with(**b, form)
		*b = &replaced
		return err
	})
}

// BlobsOf returns the blobs that an event refers to, in the order of its fields. A blob may
// be listed twice.
func BlobsOf(ev Event) (list []Blob) {
	if e, ok := ev.(offloaded); ok {
		_, _ = e.visited(func(_ *string, b **Blob, _ BlobForm) error { // never fails
			list = append(list, **b)
			return nil
		})
	}
	return list
}

// WithoutBlobs returns the event without its references to blobs. It is for an event
// whose payloads are in its fields again, and leaves the slices and pointers of ev
// unchanged.
func WithoutBlobs(ev Event) Event {
	if e, ok := ev.(offloaded); ok {
		ev, _ = e.visited(removed) // never fails
	}
	return ev
}

// Whole returns a copy of the frame whose events have what fill returns in place of their blobs, and
// no references. It stops at the first error.
func (f *Frame) Whole(fill BlobFill) (*Frame, error) {
	whole := *f
	whole.Events = make([]Event, len(f.Events))
	for i, ev := range f.Events {
		ev, err := Whole(ev, fill)
		if err != nil {
			return nil, err
		}
		whole.Events[i] = WithoutBlobs(ev)
	}
	return &whole, nil
}

// HasBlob reports whether a payload of the item is stored as a blob.
func (it *Item) HasBlob() bool {
	return it.Blob != nil || it.RawBlob != nil || it.Content.HasBlob()
}

// Whole returns the item with its payloads in place, as [Whole] does for an event.
func (it Item) Whole(fill BlobFill) (Item, error) { return it.visited(filling(fill)) }

// WithoutBlobs returns the item without its references to blobs.
func (it Item) WithoutBlobs() Item {
	it, _ = it.visited(removed) // never fails
	return it
}

// HasBlob reports whether the payload of a part is stored as a blob.
func (c Content) HasBlob() bool {
	for i := range c {
		if c[i].Blob != nil {
			return true
		}
	}
	return false
}
