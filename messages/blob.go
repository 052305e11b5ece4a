package messages

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

// Whole is the event with what fill gives in the place of each payload that is
// kept as a blob; the references stay. Its first error ends it. What ev refers to
// is left as it is.
func Whole(ev Event, fill BlobFill) (Event, error) {
	var err error
	switch e := ev.(type) {
	case InputAccepted:
		e.Content, err = e.Content.Whole(fill)
		ev = e
	case ModelCompleted:
		e.Items, err = wholeItems(e.Items, fill)
		ev = e
	case ToolCompleted:
		e.Output, err = whole(e.Output, e.Blob, BlobText, fill)
		ev = e
	case TurnCompleted:
		e.Output, err = whole(e.Output, e.Blob, BlobText, fill)
		ev = e
	case TimerSet:
		if e.Input != nil {
			in := *e.Input
			in.Content, err = in.Content.Whole(fill)
			e.Input = &in
			ev = e
		}
	}
	return ev, err
}

// BlobsOf are the blobs that an event names, in the order of its fields. One may
// come twice.
func BlobsOf(ev Event) (list []Blob) {
	_, _ = Whole(ev, func(b Blob, _ BlobForm) (string, error) { // never fails
		list = append(list, b)
		return "", nil
	})
	if done, ok := ev.(ModelCompleted); ok && done.Blob != nil {
		list = append(list, *done.Blob)
	}
	return list
}

func whole(inline string, b *Blob, form BlobForm, fill BlobFill) (string, error) {
	if b == nil {
		return inline, nil
	}
	return fill(*b, form)
}

func wholeItems(items []Item, fill BlobFill) ([]Item, error) {
	copied := false
	for i, it := range items {
		if !it.HasBlob() {
			continue
		}
		if !copied {
			items, copied = append([]Item(nil), items...), true
		}
		var err error
		if items[i], err = it.Whole(fill); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// HasBlob says that a payload of the item is kept as a blob.
func (it *Item) HasBlob() bool {
	return it.Blob != nil || it.RawBlob != nil || it.Content.HasBlob()
}

// Whole is the item with what fill gives in the place of each payload that is
// kept as a blob, on the terms of [Whole].
func (it Item) Whole(fill BlobFill) (Item, error) {
	var err error
	if it.Content, err = it.Content.Whole(fill); err != nil {
		return it, err
	}
	if it.Output, err = whole(it.Output, it.Blob, BlobText, fill); err != nil || it.RawBlob == nil {
		return it, err
	}
	raw, err := fill(*it.RawBlob, BlobJSON)
	it.Raw = []byte(raw)
	return it, err
}

// HasBlob says that a part's payload is kept as a blob.
func (c Content) HasBlob() bool {
	for i := range c {
		if c[i].Blob != nil {
			return true
		}
	}
	return false
}

// Whole is the content with what fill gives in the place of each payload that is
// kept as a blob, on the terms of [Whole].
func (c Content) Whole(fill BlobFill) (Content, error) {
	if !c.HasBlob() {
		return c, nil
	}
	c = append(Content(nil), c...)
	for i := range c {
		p := &c[i]
		var err error
		if p.Type == "text" {
			p.Text, err = whole(p.Text, p.Blob, BlobText, fill)
		} else {
			p.ImageURL, err = whole(p.ImageURL, p.Blob, BlobImage, fill)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// WithoutBlobs is the event without its references to blobs, for one whose payloads
// were put back. What ev refers to is left as it is.
func WithoutBlobs(ev Event) Event {
	switch e := ev.(type) {
	case InputAccepted:
		e.Content = e.Content.WithoutBlobs()
		return e
	case ModelCompleted:
		e.Blob = nil
		e.Items = append([]Item(nil), e.Items...)
		for i := range e.Items {
			e.Items[i] = e.Items[i].WithoutBlobs()
		}
		return e
	case ToolCompleted:
		e.Blob = nil
		return e
	case TurnCompleted:
		e.Blob = nil
		return e
	case TimerSet:
		if e.Input != nil {
			in := *e.Input
			in.Content = in.Content.WithoutBlobs()
			e.Input = &in
		}
		return e
	}
	return ev
}

// WithoutBlobs is the item without its references to blobs.
func (it Item) WithoutBlobs() Item {
	it.Blob, it.RawBlob, it.Content = nil, nil, it.Content.WithoutBlobs()
	return it
}

// WithoutBlobs is the content without its references to blobs.
func (c Content) WithoutBlobs() Content {
	if !c.HasBlob() {
		return c
	}
	c = append(Content(nil), c...)
	for i := range c {
		c[i].Blob = nil
	}
	return c
}
