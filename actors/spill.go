package actors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// DefaultMaxPayload is the largest payload that is kept if Config.MaxPayload does
// not say, in bytes.
const DefaultMaxPayload = 64 << 20

// minSpill is the smallest payload that is worth a blob, and refSize more than a
// reference takes in a frame.
const (
	minSpill = 1 << 10
	refSize  = 160
)

// spill makes an outcome fit into a frame: payloads that are too large for it are
// stored first, the largest first. If ctx ends meanwhile nobody waits for the
// outcome any more.
func (a *agent) spill(ctx context.Context, result any) any {
	limit := a.rt.maxResult()
	switch r := result.(type) {
	case turn.ToolReturned:
		if resultSize(r) > limit {
			if b, err := a.rt.shelf.keep(ctx, a.id, a.epoch, r.Output); err == nil {
				r.Output, r.Blob = "", b
			}
		}
		return r
	case turn.ToolReconciled:
		if resultSize(r) > limit {
			if b, err := a.rt.shelf.keep(ctx, a.id, a.epoch, r.Output); err == nil {
				r.Output, r.Blob = "", b
			}
		}
		return r
	}
	return result
}

// spillAnswer does that for a model's answer, beside which more bytes are needed.
// Arguments of calls stay: they stand in what approvals and later calls are held
// against.
func (a *agent) spillAnswer(ctx context.Context, o *turn.ModelAnswered, more int) error {
	shelf, limit := &a.rt.shelf, a.rt.maxResult()
	o.Items = withoutRefs(o.Items)
	if resultSize(*o)+more <= limit {
		return nil
	}
	o.Items = copyItems(o.Items)
	said, last := answerText(o.Items)
	spilt := false
	for _, p := range payloads(o.Items) {
		if resultSize(*o)+more <= limit {
			break
		}
		if size := len(p.bytes()); size > shelf.most {
			return fmt.Errorf("the answer has a part of %d bytes: the limit is %d", size, shelf.most)
		}
		b, err := shelf.keep(ctx, a.id, a.epoch, p.bytes())
		if err != nil {
			return err
		}
		p.refer(b)
		spilt = true
	}
	if !spilt || !last || said == "" {
		return nil
	}
	b, err := shelf.keep(ctx, a.id, a.epoch, valid(said)) // one text is the same blob
	o.Blob = b
	return err
}

// withoutRefs is items without references to blobs: only we make those.
func withoutRefs(items []messages.Item) []messages.Item {
	for i := range items {
		if items[i].HasBlob() {
			items = copyItems(items)
			items[i] = items[i].WithoutBlobs()
		}
	}
	return items
}

// valid is s with bad bytes shown, for what must be UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// answerText is the text that a turn would answer with, and whether the items ask
// for nothing more.
func answerText(items []messages.Item) (said string, last bool) {
	var text []string
	for _, item := range items {
		switch item.Type {
		case messages.ItemCall:
			return "", false
		case messages.ItemMessage, messages.ItemRefusal:
			text = append(text, item.Content.Text())
		}
	}
	return strings.Join(text, "\n"), true
}

// payload is a field that may be kept as a blob.
type payload struct {
	text *string
	raw  *json.RawMessage
	blob **messages.Blob
}

// bytes are what is kept: UTF-8, or JSON on one line.
func (p payload) bytes() string {
	if p.raw == nil {
		return valid(*p.text)
	}
	var line bytes.Buffer
	if json.Compact(&line, *p.raw) != nil {
		return string(*p.raw)
	}
	return line.String()
}

func (p payload) size() int {
	if p.raw == nil {
		return len(*p.text)
	}
	return len(*p.raw)
}

// refer puts the blob in the place of the payload.
func (p payload) refer(b *messages.Blob) {
	if *p.blob = b; p.raw == nil {
		*p.text = ""
	} else {
		*p.raw = nil
	}
}

// payloads are the fields of items that are worth a blob, the largest first.
func payloads(items []messages.Item) (list []payload) {
	for i := range items {
		it := &items[i]
		list = append(list, contentPayloads(it.Content)...)
		if len(it.Raw) > minSpill && it.RawBlob == nil && json.Valid(it.Raw) {
			list = append(list, payload{raw: &it.Raw, blob: &it.RawBlob})
		}
	}
	bySize(list)
	return list
}

func contentPayloads(c messages.Content) (list []payload) {
	for i := range c {
		p := &c[i]
		text := &p.ImageURL
		if p.Type == "text" {
			text = &p.Text
		}
		if len(*text) > minSpill && p.Blob == nil {
			list = append(list, payload{text: text, blob: &p.Blob})
		}
	}
	bySize(list)
	return list
}

func bySize(list []payload) {
	slices.SortStableFunc(list, func(a, b payload) int { return b.size() - a.size() })
}

// inputSize is what an input's content and metadata take in a frame; least is
// that with every payload that can be kept as a blob.
func inputSize(in messages.Input) (size, least int) {
	size = contentSize(in.Content) + len(in.Metadata)
	least = size
	for _, p := range contentPayloads(in.Content) {
		least -= p.size() - refSize
	}
	return size, least
}

// spills says that a part of the input is to be kept beside the log.
func (r *Runtime) spills(in messages.Input) bool {
	size, least := inputSize(in)
	return size > r.maxResult() && least < size
}

// storeLimit is how long an input may take to be stored before its sender is
// told to try again.
const storeLimit = 10 * time.Second

// offloadInput stores what of an input is too large for a frame, before the input is
// decided upon, and returns the input with references to it.
func (a *agent) offloadInput(d *Deliver, in messages.Input) (*Deliver, error) {
	ctx, cancel := context.WithTimeout(a.ctx, storeLimit)
	defer cancel()
	content, err := a.rt.storeContent(ctx, a.id, a.epoch, in)
	in.Content = content
	return a.stored(d, in, err)
}

// stored is d with its command as that is once its payloads are stored, or why they are not.
func (a *agent) stored(d *Deliver, c messages.Command, err error) (*Deliver, error) {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it took longer than %v", storeLimit)
	}
	if err != nil {
		return nil, messages.Refuse(messages.Unavailable,
			"the %s to %s is too large for the log itself and cannot be stored beside it now (%v): try again with the same id", c.CommandType(), a.id, err)
	}
	with := *d
	with.Command, with.digest = c, messages.CommandDigest(d.Command)
	return &with, nil
}

// storeContent is the content of an input with its largest parts kept as blobs.
func (r *Runtime) storeContent(ctx context.Context, a messages.AgentID, epoch messages.Epoch, in messages.Input) (messages.Content, error) {
	in.Content = slices.Clone(in.Content)
	for _, p := range contentPayloads(in.Content) {
		if size, _ := inputSize(in); size <= r.maxResult() {
			break
		}
		b, err := r.shelf.keep(ctx, a, epoch, p.bytes())
		if err != nil {
			return nil, err
		}
		p.refer(b)
	}
	return in.Content, nil
}
