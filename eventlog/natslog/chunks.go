package natslog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

const (
	// chunkSize is how much of a blob or a snapshot is one message, in bytes. A
	// server with a small max_payload gets smaller ones.
	chunkSize = 224 << 10
	// chunksAtOnce is how many are on their way at any time, to or from the server.
	chunksAtOnce = 4
)

// headerChunk is the header of a chunk; doc.go lays out its value.
const headerChunk = "Reprise-Chunk"

// parcel is something that is stored in chunks under one subject.
type parcel struct {
	stream  string
	subject string // without the number of the chunk
	digest  messages.Digest
	size    int64
	chunks  int
}

func (p parcel) place(chunk int) string { return p.subject + "." + strconv.Itoa(chunk) }

// cut makes n the number of chunks of up to each bytes.
func (p *parcel) cut(each int) {
	p.chunks = int(max(1, (p.size+int64(each)-1)/int64(each)))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// message is one chunk as it is published.
func (p parcel) message(chunk int, data []byte) *nats.Msg {
	return &nats.Msg{Subject: p.place(chunk), Data: data, Header: nats.Header{
		headerStream: {p.stream},
		headerChunk:  {p.line(chunk, data)},
	}}
}

func (p parcel) line(chunk int, data []byte) string {
	return fmt.Sprintf("%s %d %d %d %08x", p.digest, chunk, p.chunks, p.size, crc32.Checksum(data, castagnoli))
}

// parseParcel reads what a chunk says of the whole.
func parseParcel(stream, subject string, m *stored) (parcel, error) {
	line := m.header.Get(headerChunk)
	f := fields(line)
	p := parcel{stream: stream, subject: subject, digest: messages.Digest(f.next())}
	chunk, chunks, size := f.uint(), f.uint(), f.uint()
	if p.chunks, p.size = int(chunks), int64(size); f.err == nil && (chunk >= chunks || p.chunks < 1 || p.size < 0) {
		f.fail(errors.New("there can be no such chunk"))
	}
	if f.err != nil {
		return parcel{}, fmt.Errorf("header %s: %q: %w", headerChunk, line, f.err)
	}
	return p, nil
}

// check returns an error unless m is the chunk of the parcel.
func (p parcel) check(chunk int, m *stored) error {
	if m == nil {
		return &chunkError{p, chunk, "is missing"}
	}
	if got, want := m.header.Get(headerChunk), p.line(chunk, m.data); got != want {
		return &chunkError{p, chunk, fmt.Sprintf("at sequence %d says %q, should say %q", m.seq, got, want)}
	}
	return nil
}

// chunkError says which chunk is not what it should be.
type chunkError struct {
	parcel
	chunk int
	why   string
}

// Error names the place.
func (e *chunkError) Error() string {
	return fmt.Sprintf("chunk %d of 0 to %d on %s in %s %s", e.chunk, e.chunks-1, e.place(e.chunk), e.stream, e.why)
}

// direct returns the newest message on a subject from any server that holds the
// stream, which may be behind; nil if it has none.
func (c *conn) direct(ctx context.Context, stream, subject string) (*stored, error) {
	answer, err := c.request(ctx, &nats.Msg{Subject: "$JS.API.DIRECT.GET." + stream + "." + subject})
	if errors.Is(err, errNoResponders) { // an administrator has switched it off
		return c.newest(ctx, stream, subject)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", subject, stream, err)
	}
	if status := answer.Header.Get("Status"); status == "404" {
		return nil, nil
	} else if status != "" {
		return nil, fmt.Errorf("read %s in %s: status %s %s", subject, stream, status, answer.Header.Get("Description"))
	}
	seq, err := strconv.ParseUint(answer.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read %s in %s: an answer without a sequence", subject, stream)
	}
	return &stored{seq: seq, subject: subject, header: answer.Header, data: answer.Data}, nil
}

// chunkReader reads a parcel in order, a few chunks ahead. Where a chunk is not
// what it should be, Read returns a *chunkError; if the whole is not, errMixed. It is
// used by one goroutine.
type chunkReader struct {
	ctx    context.Context
	cancel context.CancelFunc
	get    func(ctx context.Context, chunk int) (*stored, error)
	parcel parcel
	ahead  []chan fetched // those asked for, in order
	asked  int
	given  int
	rest   []byte
	sum    hash.Hash
	size   int64
	each   int64 // bytes of every chunk but the last
	// skipped reports that sum does not cover all chunks.
	skipped bool
}

type fetched struct {
	m   *stored
	err error
}

// errMixed says that the chunks are each whole but not what was stored together.
var errMixed = errors.New("the chunks do not make up what their headers say")

// open makes a reader of a parcel whose chunk 0 is here already.
func (p parcel) open(ctx context.Context, first *stored, get func(ctx context.Context, chunk int) (*stored, error)) *chunkReader {
	r := &chunkReader{get: get, parcel: p, asked: 1, sum: sha256.New()}
	r.ctx, r.cancel = context.WithCancel(ctx)
	here := make(chan fetched, 1)
	here <- fetched{m: first}
	r.ahead = append(r.ahead, here)
	return r
}

// Read reads what is next.
func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.given == r.parcel.chunks {
			return 0, r.end()
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next waits for the next chunk and asks for those behind it.
func (r *chunkReader) next() error {
	for ; len(r.ahead) < chunksAtOnce && r.asked < r.parcel.chunks; r.asked++ {
		answer, chunk := make(chan fetched, 1), r.asked
		r.ahead = append(r.ahead, answer)
		go func() {
			m, err := r.get(r.ctx, chunk)
			answer <- fetched{m, err}
		}()
	}
	got := <-r.ahead[0]
	if got.err != nil {
		return got.err
	}
	if err := r.parcel.check(r.given, got.m); err != nil {
		return err
	}
	if r.given == 0 {
		r.each = max(1, int64(len(got.m.data)))
	}
	r.ahead = r.ahead[1:]
	r.given++
	r.rest = got.m.data
	r.size += int64(len(r.rest))
	if !r.skipped {
		_, _ = r.sum.Write(r.rest) // never fails
	}
	return nil
}

// Skip passes over n bytes without asking for the chunks that lie between; see
// eventlog.Skipper.
func (r *chunkReader) Skip(n int64) error {
	if r.given == 0 {
		if err := r.next(); err != nil {
			return err
		}
	}
	if n <= int64(len(r.rest)) {
		r.rest = r.rest[n:]
		return nil
	}
	at := r.size - int64(len(r.rest)) + n
	if at > r.parcel.size {
		return io.ErrUnexpectedEOF
	}
	chunk := int(at / r.each)
	for ; r.given < chunk && len(r.ahead) > 0; r.given++ {
		r.ahead, r.skipped = r.ahead[1:], true
	}
	if r.given < chunk {
		r.given, r.asked, r.skipped = chunk, chunk, true
	}
	if r.rest, r.size = nil, int64(chunk)*r.each; r.given == r.parcel.chunks {
		r.size = r.parcel.size
		return nil
	}
	if err := r.next(); err != nil {
		return err
	}
	if at -= int64(chunk) * r.each; at > int64(len(r.rest)) {
		return errMixed
	}
	r.rest = r.rest[at:]
	return nil
}

func (r *chunkReader) end() error {
	if r.skipped && r.size == r.parcel.size {
		return io.EOF
	}
	if r.size != r.parcel.size || messages.Digest(hex.EncodeToString(r.sum.Sum(nil))) != r.parcel.digest {
		return errMixed
	}
	return io.EOF
}

// Close drops what was asked for and has not come.
func (r *chunkReader) Close() error {
	r.cancel()
	return nil
}
