package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The server's protocol for snapshots of streams. A request names a subject;
// the server sends the snapshot there in chunks, each of which is answered with
// an empty message (a window of them may be open), then an empty message whose
// status says how it went. A restore is a request too, answered with the subject
// that takes the chunks; each is a request, and an empty one ends them.
// ADR-20 and ADR-31 of nats-architecture-and-design have the words.
const (
	apiSnapshot = "$JS.API.STREAM.SNAPSHOT."
	apiRestore  = "$JS.API.STREAM.RESTORE."
	// answers is how long the server may take to answer a request.
	answers = 15 * time.Second
	// pause is how long it may say nothing within a snapshot: it may have to look
	// far for the next message.
	pause = time.Minute
	// finish is how long it may take to put a restored stream in place.
	finish = 2 * time.Minute
	// chunkSize is that of a chunk; the window holds 16 of them.
	chunkSize  = 256 << 10
	windowSize = 4 << 20
)

// shot is what the server says of a stream when it begins to send it.
type shot struct {
	Error  *jetstream.APIError `json:"error"`
	Config json.RawMessage     `json:"config"`
	State  json.RawMessage     `json:"state"`
}

// snapshot passes the server's snapshot of a stream to take, chunk by chunk.
func snapshot(ctx context.Context, nc *nats.Conn, stream string, take func([]byte) error) (*shot, error) {
	sub, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err // the window bounds it
	}
	var s shot
	if err := ask(ctx, nc, apiSnapshot+stream, struct {
		To          string `json:"deliver_subject"`
		NoConsumers bool   `json:"no_consumers"`
		Chunk       int    `json:"chunk_size"`
		Window      int    `json:"window_size"`
	}{sub.Subject, true, chunkSize, windowSize}, &s); err != nil {
		return nil, err
	}
	if s.Error != nil {
		return nil, s.Error
	}
	for index := 1; ; index++ {
		m, err := next(ctx, sub)
		if err != nil {
			return nil, err
		}
		if len(m.Data) == 0 {
			return &s, ended(m)
		}
		if got := indexOf(m.Reply); m.Reply != "" && got != index {
			return nil, fmt.Errorf("chunk %d of the snapshot came after %d: the connection is too slow, or another program answers", got, index-1)
		}
		if err := take(m.Data); err != nil {
			return nil, err
		}
		if m.Reply != "" { // the last has none
			if err := nc.Publish(m.Reply, nil); err != nil {
				return nil, err
			}
		}
	}
}

// next waits for the next message of a snapshot.
func next(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	within, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	m, err := sub.NextMsgWithContext(within)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("the server sent nothing for %v", pause)
	}
	return m, err
}

// ended reads the message that ends a snapshot. Servers before 2.12 send one
// without a status.
func ended(m *nats.Msg) error {
	if status := m.Header.Get("Status"); status != "" && status != "204" {
		return fmt.Errorf("the server gave up: %s %s", status, m.Header.Get("Description"))
	}
	return nil
}

// indexOf reads the number of a chunk off its reply subject, whose last token it is.
func indexOf(reply string) int {
	n, err := strconv.Atoi(reply[strings.LastIndexByte(reply, '.')+1:])
	if err != nil {
		return -1
	}
	return n
}

// ask sends a request and reads its answer.
func ask(ctx context.Context, nc *nats.Conn, subject string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	got, err := send(ctx, nc, subject, body, answers)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(got, answer); err != nil {
		return fmt.Errorf("the server's answer to %s: %w", subject, err)
	}
	return nil
}

// send sends a request and returns its answer.
func send(ctx context.Context, nc *nats.Conn, subject string, body []byte, within time.Duration) ([]byte, error) {
	bound, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	m, err := nc.RequestWithContext(bound, subject, body)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("there is no answer on %s: JetStream is off or has no leader there, or this user may not publish to it", subject)
	case err != nil:
		return nil, err
	}
	return m.Data, nil
}

// begin asks the server to make a stream of a snapshot, and returns the subject
// that takes it.
func begin(ctx context.Context, nc *nats.Conn, stream string, cfg, state json.RawMessage) (string, error) {
	var to struct {
		Error   *jetstream.APIError `json:"error"`
		Subject string              `json:"deliver_subject"`
	}
	if err := ask(ctx, nc, apiRestore+stream, struct {
		Config json.RawMessage `json:"config"`
		State  json.RawMessage `json:"state"`
	}{cfg, state}, &to); err != nil {
		return "", err
	}
	if to.Error != nil {
		return "", to.Error
	}
	return to.Subject, nil
}

// feed sends the snapshot to the subject that takes it.
func feed(ctx context.Context, nc *nats.Conn, to string, from io.Reader, told func(int)) (*jetstream.StreamInfo, error) {
	chunk := make([]byte, min(chunkSize, int(nc.MaxPayload())))
	for {
		n, err := io.ReadFull(from, chunk)
		if n > 0 {
			if err := sendChunk(ctx, nc, to, chunk[:n]); err != nil {
				return nil, err
			}
			told(n)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return putInPlace(ctx, nc, to)
		}
		if err != nil {
			return nil, err
		}
	}
}

// sendChunk sends a part of a snapshot. The server answers with nothing, or
// with what is wrong.
func sendChunk(ctx context.Context, nc *nats.Conn, to string, chunk []byte) error {
	answer, err := send(ctx, nc, to, chunk, answers)
	if err != nil || len(answer) == 0 {
		return err
	}
	return made(answer, nil)
}

// putInPlace ends a restore.
func putInPlace(ctx context.Context, nc *nats.Conn, to string) (*jetstream.StreamInfo, error) {
	answer, err := send(ctx, nc, to, nil, finish)
	if err != nil {
		return nil, err
	}
	info := new(jetstream.StreamInfo)
	return info, made(answer, info)
}

// made reads the server's answer about a stream that it was to make.
func made(answer []byte, info *jetstream.StreamInfo) error {
	var got struct {
		Error *jetstream.APIError `json:"error"`
	}
	err := json.Unmarshal(answer, &got)
	switch {
	case err != nil:
		return fmt.Errorf("the server's answer: %w", err)
	case got.Error != nil:
		return got.Error
	case info == nil:
		return nil
	}
	return json.Unmarshal(answer, info)
}

// ErrLost is wrapped by errors of work that has ended because the server has gone.
var ErrLost = errors.New("the connection to the NATS server was lost")

// refusals ends ctx with what the server refuses on the connection, which it
// reports apart from the requests, and when the connection is lost: requests would
// only go unanswered.
func refusals(ctx context.Context, nc *nats.Conn) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	before := nc.ErrorHandler()
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			cancel(fmt.Errorf("%w: grant this user publishing to $JS.API.STREAM.>, $JS.API.CONSUMER.>, $JS.SNAPSHOT.> and subscribing to _INBOX.>, or use an administrator's credentials", err))
		}
	})
	changed := nc.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	go func() {
		if _, told := <-changed; told {
			cancel(ErrLost)
		}
	}()
	return ctx, func() {
		nc.RemoveStatusListener(changed)
		nc.SetErrorHandler(before)
		cancel(nil)
	}
}

// denied is what the server has refused, if it has, or that it has gone, else err.
func denied(ctx context.Context, err error) error {
	if errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrConnectionClosed) { // not reported yet
		return ErrLost
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return cause
	}
	return err
}
