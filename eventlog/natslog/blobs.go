package natslog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// PutBlob stores what r holds; see eventlog.Blobs. A few chunks are in memory at
// any time. A chunk whose answer is lost is tried again for some seconds; after
// an error the whole may be stored again, which continues with what is missing.
func (l *Log) PutBlob(ctx context.Context, a messages.AgentID, r io.ReadSeeker) (messages.Blob, error) {
	if err := a.Validate(); err != nil {
		return messages.Blob{}, err
	}
	begin, sum := int64(0), sha256.New()
	size, err := io.Copy(sum, r)
	if err == nil {
		begin, err = r.Seek(-size, io.SeekCurrent) // as a reader may begin in the middle
	}
	if err != nil {
		return messages.Blob{}, fmt.Errorf("read a blob of %s: %w", a, err)
	}
	b := messages.Blob{SHA256: messages.Digest(hex.EncodeToString(sum.Sum(nil))), Size: size}
	p := l.blob(a, b)
	p.cut(l.chunk)
	c := l.conn(a.Partition())
	if err = c.store(ctx, p, r, begin, l.chunk); err != nil && l.remake(ctx, p.stream) {
		err = c.store(ctx, p, r, begin, l.chunk)
	}
	if err != nil {
		return messages.Blob{}, fmt.Errorf("store blob %s of %s: %w", b.SHA256, a, err)
	}
	return b, nil
}

// store puts the parcel, which begins in r there, where it is not yet.
func (c *conn) store(ctx context.Context, p parcel, r io.ReadSeeker, begin int64, each int) error {
	if there, err := c.whole(ctx, p); err != nil || there {
		return err
	}
	put := func() error {
		if _, err := r.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		return c.put(ctx, p, r, each)
	}
	err := put()
	if errors.Is(err, errOther) { // left by a server with other limits, or damaged
		if err = c.clear(ctx, p); err == nil {
			err = put()
		}
	}
	return err
}

func (l *Log) blob(a messages.AgentID, b messages.Blob) parcel {
	return parcel{stream: l.names.Blobs(a.Partition()), subject: l.subjects.Blobs(a) + "." + string(b.SHA256), digest: b.SHA256, size: b.Size}
}

// whole reports whether all of the parcel is stored. Its last chunk is stored after
// all others. The leader is asked: a server that is behind may still have what was
// removed.
func (c *conn) whole(ctx context.Context, p parcel) (bool, error) {
	last := p.chunks - 1
	m, err := c.newest(ctx, p.stream, p.place(last))
	return err == nil && p.check(last, m) == nil, err
}

// clear removes all chunks of the parcel.
func (c *conn) clear(ctx context.Context, p parcel) error {
	return c.purge(ctx, p.stream, p.subject+".>", 0)
}

// put reads the parcel from r and publishes its chunks, the last one when all
// others are stored.
func (c *conn) put(ctx context.Context, p parcel, r io.Reader, each int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var sent sync.WaitGroup
	sum, buffers := sha256.New(), make(chan []byte, chunksAtOnce)
	for range chunksAtOnce {
		buffers <- make([]byte, min(int64(each), p.size))
	}
	for i := range p.chunks {
		var buffer []byte
		select {
		case buffer = <-buffers:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		data := buffer[:min(int64(each), p.size-int64(i)*int64(each))]
		if _, err := io.ReadFull(r, data); err != nil {
			return fmt.Errorf("read it again: %w", err)
		}
		_, _ = sum.Write(data) // never fails
		if i < p.chunks-1 {
			sent.Go(func() {
				if err := c.putChunk(ctx, p, i, data); err != nil {
					cancel(err)
				}
				buffers <- buffer
			})
			continue
		}
		sent.Wait()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if digest := messages.Digest(hex.EncodeToString(sum.Sum(nil))); digest != p.digest {
			return fmt.Errorf("its bytes have changed while they were read: they have hash %s now", digest)
		}
		return c.putChunk(ctx, p, i, data)
	}
	return nil
}

// errOther says that another chunk is stored in the place of this one.
var errOther = errors.New("another chunk is stored in its place")

// putTries is how often a chunk is sent whose outcome is unknown.
const putTries = 5

// putChunk publishes one chunk. A place that is taken refuses it, so that it may
// be tried again.
func (c *conn) putChunk(ctx context.Context, p parcel, chunk int, data []byte) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		_, err := c.publish(ctx, p.message(chunk, data))
		var api *jetstream.APIError
		if err == nil || !errors.As(err, &api) {
			return struct{}{}, err
		}
		if api.ErrorCode == codeStoreFailed {
			err = c.taken(ctx, p, chunk, data, err)
		}
		if err != nil {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxTries(putTries), backoff.WithMaxElapsedTime(0))
	return err
}

// taken says what a chunk met that the stream has refused: nil if that very
// chunk is there, errOther if another is, else the refusal.
func (c *conn) taken(ctx context.Context, p parcel, chunk int, data []byte, refusal error) error {
	m, err := c.newest(ctx, p.stream, p.place(chunk))
	switch {
	case err != nil:
		return errors.Join(refusal, err)
	case m == nil:
		return refusal
	case p.check(chunk, m) != nil || !bytes.Equal(m.data, data):
		return errOther
	}
	return nil
}

// Blob streams a blob; see eventlog.Blobs. One of which the last chunk is missing
// was never stored whole and is not found. A chunk that is missing or damaged is
// messages.Damaged, with its place.
func (l *Log) Blob(ctx context.Context, a messages.AgentID, b messages.Blob) (io.ReadCloser, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	if n, err := hex.DecodeString(string(b.SHA256)); err != nil || len(n) != sha256.Size {
		return nil, messages.Refuse(messages.NotFound, "%q is no blob's hash: want 64 hex digits", b.SHA256)
	}
	p, c := l.blob(a, b), l.conn(a.Partition())
	get := func(ctx context.Context, chunk int) (*stored, error) { return c.sure(ctx, p.stream, p.place(chunk)) }
	first, err := get(ctx, 0)
	switch {
	case err != nil:
		return nil, err
	case first == nil:
		return nil, l.noBlob(a, b)
	}
	read := &blobReader{agent: a, want: b}
	p, err = parseParcel(p.stream, p.subject, first)
	if err != nil || p.digest != b.SHA256 {
		return nil, read.damaged(&chunkError{p, 0, fmt.Sprintf("at sequence %d is no chunk of it: %v", first.seq, err)})
	}
	if p.chunks > 1 {
		switch last, err := get(ctx, p.chunks-1); {
		case err != nil:
			return nil, err
		case last == nil:
			return nil, l.noBlob(a, b)
		}
	}
	read.chunkReader = p.open(ctx, first, get)
	return read, nil
}

func (l *Log) noBlob(a messages.AgentID, b messages.Blob) error {
	return messages.Refuse(messages.NotFound, "blob %s of %s is not stored here", b.SHA256, a)
}

// sure returns the message on a subject, from any server that has it.
func (c *conn) sure(ctx context.Context, stream, subject string) (*stored, error) {
	m, err := c.direct(ctx, stream, subject)
	if err == nil && m == nil {
		return c.newest(ctx, stream, subject)
	}
	return m, err
}

// blobReader reports damage as a blob's.
type blobReader struct {
	*chunkReader
	agent messages.AgentID
	want  messages.Blob
}

// Read reads what is next; behind the last byte it reports what does not match.
func (r *blobReader) Read(p []byte) (int, error) {
	n, err := r.chunkReader.Read(p)
	switch err = r.told(err); {
	case errors.Is(err, io.EOF) && r.size != r.want.Size:
		err = r.damaged(fmt.Errorf("it has %d bytes, not %d", r.size, r.want.Size))
	case errors.Is(err, io.EOF):
		err = io.EOF
	}
	return n, err
}

// Skip passes over what lies between; see eventlog.Skipper.
func (r *blobReader) Skip(n int64) error { return r.told(r.chunkReader.Skip(n)) }

// told returns an error with damage reported as the blob's.
func (r *blobReader) told(err error) error {
	if chunk := (*chunkError)(nil); errors.As(err, &chunk) || errors.Is(err, errMixed) {
		return r.damaged(err)
	}
	return err
}

func (r *blobReader) damaged(err error) error {
	return messages.Refuse(messages.Damaged, "blob %s of %s is damaged: %v; restore it from a backup", r.want.SHA256, r.agent, err)
}

// ListBlobs yields the agent's blobs; see eventlog.Blobs.
func (l *Log) ListBlobs(ctx context.Context, a messages.AgentID) iter.Seq2[messages.Blob, error] {
	return func(yield func(messages.Blob, error) bool) {
		if err := a.Validate(); err != nil {
			yield(messages.Blob{}, err)
			return
		}
		prefix, sizes := l.subjects.Blobs(a)+".", make(map[messages.Digest]int64)
		err := l.conn(a.Partition()).list(ctx, l.names.Blobs(a.Partition()), prefix+">", func(m *delivery) {
			hash, _, _ := strings.Cut(strings.TrimPrefix(m.subject, prefix), ".")
			size, _ := strconv.ParseInt(m.header.Get(nats.MsgSize), 10, 64) // the server's own
			sizes[messages.Digest(hash)] += size
		})
		for hash, size := range sizes {
			if err == nil && !yield(messages.Blob{SHA256: hash, Size: size}, nil) {
				return
			}
		}
		if err != nil {
			yield(messages.Blob{}, fmt.Errorf("list the blobs of %s: %w", a, err))
		}
	}
}

// BlobAgents are the agents of a shard that have blobs, in no order.
func (l *Log) BlobAgents(ctx context.Context, shard int) ([]messages.AgentID, error) {
	const parts = messages.Partitions / LogStreams
	seen := make(map[messages.AgentID]bool)
	for p := messages.Partition(shard * parts); p < messages.Partition((shard+1)*parts); p++ {
		filter := l.subjects.BlobsOf(p)
		prefix := strings.TrimSuffix(filter, ">")
		err := l.conn(p).list(ctx, l.names.Blobs(p), filter, func(m *delivery) {
			t := strings.Split(strings.TrimPrefix(m.subject, prefix), ".")
			if len(t) != 5 {
				return
			}
			if a := (messages.AgentID{Tenant: t[0], Kind: t[1], Key: t[2]}); a.Validate() == nil && a.Partition() == p {
				seen[a] = true
			}
		})
		if err != nil {
			return nil, fmt.Errorf("list who has blobs in partition %v: %w", p, err)
		}
	}
	return slices.Collect(maps.Keys(seen)), nil
}

// list calls give with the headers of every message that the filter matches, as far as the
// stream's leader has them now. The consumer may be of a server that is behind.
func (c *conn) list(ctx context.Context, stream, filter string, give func(*delivery)) error {
	at, err := uint64(0), error(nil)
	for range patience {
		var over bool
		if at, over, err = c.listOnce(ctx, stream, filter, at, give); over {
			return err
		}
	}
	return err
}

// listOnce lists with one consumer what is behind sequence at, and says where it
// has come to and whether that was all.
func (c *conn) listOnce(ctx context.Context, stream, filter string, at uint64, give func(*delivery)) (end uint64, over bool, err error) {
	newest, err := c.newest(ctx, stream, filter)
	if err != nil || seqOf(newest) <= at {
		return at, err == nil || ctx.Err() != nil, err
	}
	f, err := c.feed(ctx, stream, jetstream.ConsumerConfig{
		FilterSubject: filter, HeadersOnly: true, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: at + 1,
	})
	if err != nil {
		return at, ctx.Err() != nil, err
	}
	defer f.close()
	err = f.all(ctx, func(m *delivery) bool {
		at = m.seq
		give(m)
		return at < newest.seq
	}, func() (more bool, err error) { // what was the newest may have been removed
		newest, err = c.newest(ctx, stream, filter)
		return at < seqOf(newest), err
	})
	return at, err == nil || ctx.Err() != nil, err
}
