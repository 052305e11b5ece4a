package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
)

var ann = messages.AgentID{Tenant: "default", Kind: "support", Key: "ann"}

// anything fills a value at random. Texts may be no UTF-8; JSON is JSON.
func anything(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"", "a", "é\x1b[2J", "bad \xff utf8", `{"a": [1, "x"]}`, "line\nline"}[r.IntN(6)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(r.IntN(1 << 20)))
	case reflect.Uint64, reflect.Uint32:
		v.SetUint(uint64(r.IntN(1 << 20)))
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			anything(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte([]string{`{"a": "é"}`, `[1,2.50]`, `"x"`}[r.IntN(3)]))
		} else if depth < 4 && r.IntN(2) == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(2), 2)) // none and no list are stored alike
			for i := range v.Len() {
				anything(r, v.Index(i), depth+1)
			}
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<32), r.Int64N(1e9)).UTC()))
			return
		}
		for i := range v.NumField() {
			anything(r, v.Field(i), depth+1)
		}
	}
}

// anyLog returns a log of frames of random events, chained as in a log.
func anyLog(t *testing.T, r *rand.Rand, frames int) (log []*messages.Frame) {
	t.Helper()
	kinds, next := messages.Events(), messages.EventNumber(1+r.IntN(3))
	var before *messages.Frame
	var digest messages.Digest
	for i := range frames {
		f := &messages.Frame{ID: messages.FrameID(fmt.Sprintf("f%d", i)), Epoch: messages.Epoch(i), First: next, Time: time.Unix(0, r.Int64()).UTC()}
		anything(r, reflect.ValueOf(&f.Cause).Elem(), 0)
		for range 1 + r.IntN(3) {
			v := reflect.New(reflect.TypeOf(kinds[r.IntN(len(kinds))])).Elem()
			anything(r, v, 0)
			f.Events = append(f.Events, v.Interface().(messages.Event))
		}
		if before != nil {
			f.Prev, f.PrevDigest = before.ID, digest
		}
		b, err := messages.EncodeFrame(ann, f)
		if err != nil {
			t.Fatal(err)
		}
		if f, err = messages.DecodeFrame(ann, b); err != nil { // as a log returns it
			t.Fatal(err)
		}
		log, before, digest, next = append(log, f), f, messages.DigestOf(b), f.Last()+1
	}
	return log
}

// written returns a file with one agent of these frames.
func written(t *testing.T, head export.Head, log []*messages.Frame) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := export.NewWriter(&file, head)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range log {
		if err := w.Frame(f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(nil, nil); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// stored is an agent in memory, as a Source.
type stored struct {
	definitions map[messages.Digest][]byte
	blobs       map[messages.Digest][]byte
	frames      []*messages.Frame
}

// Lines yields each definition before each frame that names it.
func (s stored) Lines(context.Context) iter.Seq2[export.Line, error] {
	return func(yield func(export.Line, error) bool) {
		for _, f := range s.frames {
			for _, ev := range f.Events {
				hash := messages.DefinitionOf(ev)
				if data := s.definitions[hash]; data != nil && !yield(export.Line{Definition: &export.Definition{Hash: hash, Data: data}}, nil) {
					return
				}
			}
			if !yield(export.Line{Frame: f}, nil) {
				return
			}
		}
	}
}

// Blob writes a blob.
func (s stored) Blob(_ context.Context, b messages.Blob, w io.Writer) error {
	data, is := s.blobs[b.SHA256]
	if !is {
		return messages.Refuse(messages.NotFound, "blob %s is not stored any more", b.SHA256)
	}
	_, err := w.Write(data)
	return err
}

func (s *stored) define(data string) string {
	if s.definitions == nil {
		s.definitions = make(map[messages.Digest][]byte)
	}
	hash := messages.DigestOf([]byte(data))
	s.definitions[hash] = []byte(data)
	return string(hash)
}

func (s *stored) keep(data string) *messages.Blob {
	if s.blobs == nil {
		s.blobs = make(map[messages.Digest][]byte)
	}
	b := &messages.Blob{SHA256: messages.DigestOf([]byte(data)), Size: int64(len(data))}
	s.blobs[b.SHA256] = []byte(data)
	return b
}

// frame adds a frame.
func (s *stored) frame(cause messages.Cause, events ...messages.Event) {
	f := &messages.Frame{ID: messages.FrameID(fmt.Sprintf("f%d", len(s.frames))), Epoch: 1, First: 1, Time: time.Unix(1767225600, 0).UTC(), Cause: cause, Events: events}
	if n := len(s.frames); n > 0 {
		f.First, f.Prev = s.frames[n-1].Last()+1, s.frames[n-1].ID
	}
	s.frames = append(s.frames, f)
}

// only returns the one agent of a file.
func only(t *testing.T, file []byte) (a *export.Agent) {
	t.Helper()
	for got, err := range export.Agents(bytes.NewReader(file)) {
		if err != nil {
			t.Fatal(err)
		}
		if a != nil {
			t.Fatal("the file holds several agents")
		}
		a = got
	}
	return a
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
