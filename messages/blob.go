package messages

import "slices"

// Blob names a payload that is kept beside the log, because it is too large for
// a frame. It belongs to one agent. Where an event or an item has one, the field
// that it is the payload of is empty.
type Blob struct {
	SHA256 Digest `json:"sha256"` // of its bytes, in hex
	Size   int64  `json:"size"`   // in bytes
	// Stored is the SHA-256 of what is kept, if that is sealed. Empty: it is kept
	// as it is, under SHA256.
	Stored Digest `json:"stored,omitempty"`
}

// Kept is the hash under which a store lists and removes the blob.
func (b Blob) Kept() Digest {
	if b.Stored != "" {
		return b.Stored
	}
	return b.SHA256
}

// BlobForm is what a blob's bytes are.
type BlobForm int

// The forms.
const (
	BlobText  BlobForm = iota // UTF-8
	BlobImage                 // the address of an image, usually a data URL
	BlobJSON                  // one JSON value on one line
)

// BlobFill gives the bytes of a blob, or what is to stand in their place.
type BlobFill func(b Blob, form BlobForm) (string, error)

// visit is called for each payload of a message that is kept as a blob: the field that it
// is the payload of, nil if another field of the event has it too, its reference and its
// form. It may change field and reference.
type visit func(payload *string, b **Blob, form BlobForm) error

// offloaded is implemented by each event that may name blobs. What v changes is in the
// event that visited returns; what the receiver refers to is left as it is. The first
// error of v ends it.
type offloaded interface {
	visited(v visit) (Event, error)
}

func (e InputAccepted) visited(v visit) (_ Event, err error) {
	e.Content, err = e.Content.visited(v)
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
	if err = v.one(&it.Output, &it.Blob, BlobText); err != nil || it.RawBlob == nil {
		return it, err
	}
	raw := string(it.Raw)
	if err = v(&raw, &it.RawBlob, BlobJSON); raw != string(it.Raw) {
		it.Raw = []byte(raw)
	}
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

// filling returns a visit that puts what fill returns in the place of each payload.
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

// Whole returns the event with what fill returns in the place of each payload that is
// kept as a blob; the references stay. Its first error ends it. What ev refers to
// is left as it is.
func Whole(ev Event, fill BlobFill) (Event, error) {
	if e, ok := ev.(offloaded); ok {
		return e.visited(filling(fill))
	}
	return ev, nil
}

// BlobsOf returns the blobs that an event names, in the order of its fields. One may
// come twice.
func BlobsOf(ev Event) (list []Blob) {
	if e, ok := ev.(offloaded); ok {
		_, _ = e.visited(func(_ *string, b **Blob, _ BlobForm) error { // never fails
			list = append(list, **b)
			return nil
		})
	}
	return list
}

// WithoutBlobs returns the event without its references to blobs, for one whose payloads
// were put back. What ev refers to is left as it is.
func WithoutBlobs(ev Event) Event {
	if e, ok := ev.(offloaded); ok {
		ev, _ = e.visited(removed) // never fails
	}
	return ev
}

// HasBlob reports whether a payload of the item is kept as a blob.
func (it *Item) HasBlob() bool {
	return it.Blob != nil || it.RawBlob != nil || it.Content.HasBlob()
}

// Whole returns the item with what fill returns in the place of each payload that is
// kept as a blob, as [Whole] does.
func (it Item) Whole(fill BlobFill) (Item, error) { return it.visited(filling(fill)) }

// WithoutBlobs returns the item without its references to blobs.
func (it Item) WithoutBlobs() Item {
	it, _ = it.visited(removed) // never fails
	return it
}

// HasBlob reports whether a part's payload is kept as a blob.
func (c Content) HasBlob() bool {
	for i := range c {
		if c[i].Blob != nil {
			return true
		}
	}
	return false
}
