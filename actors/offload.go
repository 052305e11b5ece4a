package actors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// DefaultMaxPayload is the largest payload that is stored if Config.MaxPayload is zero, in bytes.
const DefaultMaxPayload = 64 << 20

func (c Config) maxPayload() int { return cmp.Or(c.MaxPayload, DefaultMaxPayload) }

// minOffload is the smallest payload that is worth a blob, and refSize more than a reference
// takes in a frame.
const (
	minOffload = 1 << 10
	refSize    = 160
)

// offload makes a tool's result fit into a frame: output that is too large for it is stored as a
// blob first. If ctx ends meanwhile the outcome is no longer awaited.
func (a *agent) offload(ctx context.Context, result any) any {
	if resultSize(result) <= a.rt.maxResult {
		return result
	}
	switch r := result.(type) {
	case turn.ToolReturned:
		if r.Failed == "" {
			r.Output, r.Blob = a.offloadText(ctx, r.Output)
		}
		return r
	case turn.ToolReconciled:
		r.Output, r.Blob = a.offloadText(ctx, r.Output)
		return r
	}
	return result
}

// offloadText stores text as a blob, and returns it if that failed.
func (a *agent) offloadText(ctx context.Context, text string) (string, *messages.Blob) {
	b, err := a.rt.blobs.put(ctx, a.id, a.epoch, strings.NewReader(text))
	if err != nil {
		return text, nil
	}
	return "", b
}

// offloadAnswer does that for a model's answer, beside which more bytes are needed: its largest
// payloads are stored first. Arguments of calls stay: approvals and later calls are compared
// with them.
func (a *agent) offloadAnswer(ctx context.Context, o *turn.ModelAnswered, more int) error {
	o.Items = withoutRefs(o.Items)
	fits := func() bool { return resultSize(*o)+more <= a.rt.maxResult }
	if fits() {
		return nil
	}
	o.Items = copyItems(o.Items)
	text, last := projections.AnswerText(o.Items)
	stored, err := a.rt.blobs.putLargest(ctx, a.id, a.epoch, payloads(o.Items), fits)
	if err != nil || stored == 0 || !last || text == "" {
		return err
	}
	o.Blob, err = a.rt.blobs.put(ctx, a.id, a.epoch, strings.NewReader(valid(text))) // one text is the same blob
	return err
}

// putLargest stores payloads, in their order, until the rest fits.
func (s *blobs) putLargest(ctx context.Context, a messages.AgentID, epoch messages.Epoch, list []payload, fits func() bool) (stored int, err error) {
	for _, p := range list {
		if fits() {
			break
		}
		text := p.text()
		if len(text) > s.most {
			return stored, fmt.Errorf("the answer has a part of %d bytes: the limit is %d", len(text), s.most)
		}
		b, err := s.put(ctx, a, epoch, strings.NewReader(text))
		if err != nil {
			return stored, err
		}
		p.refer(b)
		stored++
	}
	return stored, nil
}

// withoutRefs returns items without references to blobs: only this package makes those.
func withoutRefs(items []messages.Item) []messages.Item {
	for i := range items {
		if items[i].HasBlob() {
			items = copyItems(items)
			items[i] = items[i].WithoutBlobs()
		}
	}
	return items
}

// valid returns s with bad bytes replaced, for what must be UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// payload is a field that may be stored as a blob.
type payload struct {
	size int
	// text returns what is stored: UTF-8, or JSON on one line.
	text func() string
	// refer replaces the field with a reference to the blob.
	refer func(*messages.Blob)
}

// payloads returns the fields of items that are worth a blob, the largest first.
func payloads(items []messages.Item) (list []payload) {
	for i := range items {
		it := &items[i]
		list = append(list, contentPayloads(it.Content)...)
		if len(it.Raw) > minOffload && it.RawBlob == nil && json.Valid(it.Raw) {
			list = append(list, payload{len(it.Raw), func() string { return oneLine(it.Raw) }, func(b *messages.Blob) { it.Raw, it.RawBlob = nil, b }})
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
		if len(*text) > minOffload && p.Blob == nil {
			list = append(list, payload{len(*text), func() string { return valid(*text) }, func(b *messages.Blob) { *text, p.Blob = "", b }})
		}
	}
	bySize(list)
	return list
}

func bySize(list []payload) {
	slices.SortStableFunc(list, func(a, b payload) int { return b.size - a.size })
}

// oneLine returns JSON without white space around its values.
func oneLine(raw json.RawMessage) string {
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		return string(raw)
	}
	return line.String()
}

// inputSize returns what an input's content and metadata take in a frame; least is that with
// every payload that can be stored as a blob.
func inputSize(in messages.Input) (size, least int) {
	size = contentSize(in.Content) + len(in.Metadata)
	least = size
	for _, p := range contentPayloads(in.Content) {
		least -= p.size - refSize
	}
	return size, least
}

// offloads reports whether a part of the input is to be stored beside the log.
func (r *Runtime) offloads(in messages.Input) bool {
	size, least := inputSize(in)
	return size > r.maxResult && least < size
}

// waitLimit is how long the mailbox, or a person, waits for what is stored or read beside the
// log.
const waitLimit = 10 * time.Second

// offloadInput stores what of an input is too large for a frame, before the input is decided on,
// and returns the input with references to it.
func (a *agent) offloadInput(d *Deliver, in messages.Input) (*Deliver, error) {
	ctx, cancel := context.WithTimeout(a.ctx, waitLimit)
	defer cancel()
	in.Content = slices.Clone(in.Content)
	_, err := a.rt.blobs.putLargest(ctx, a.id, a.epoch, contentPayloads(in.Content), func() bool {
		size, _ := inputSize(in)
		return size <= a.rt.maxResult
	})
	return a.stored(d, in, err)
}

// stored returns d with its command as that is once its payloads are stored, or why they are not.
func (a *agent) stored(d *Deliver, c messages.Command, err error) (*Deliver, error) {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it took longer than %v", waitLimit)
	}
	if err != nil {
		return nil, messages.Refuse(messages.Unavailable,
			"the %s to %s is too large for the log itself and cannot be stored beside it now (%v): try again with the same id", c.CommandType(), a.id, err)
	}
	with := *d
	with.Command, with.digest = c, messages.CommandDigest(d.Command)
	return &with, nil
}
