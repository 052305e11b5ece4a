package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// puller asks for a consumer's messages, and tells them from what the server says of
// the asking: that comes to the subject which asked, a message keeps its own. The
// library goes by a header, which whoever sends an input may set, and so could end the
// consumer of everybody in its partition. One goroutine calls next.
type puller struct {
	nc   *nats.Conn
	sub  *nats.Subscription
	ask  string // where messages are asked for
	msgs chan *nats.Msg
	// wanted is how many the server may still send.
	wanted int
	quiet  *time.Timer
	broken <-chan nats.Status
	idle   func() error
	stop   func()
	over   chan struct{}
}

// asked is how long one request for messages is good.
const asked = 30 * time.Second

var (
	errStopped = errors.New("the consumer is not asked any more")
	// errSilent says that the consumer may be there all the same, and that something of
	// it may have been lost.
	errSilent = errors.New("nothing is heard of the consumer")
)

// pull begins to ask. broken receives when the connection breaks; idle is called when
// the server says that there is nothing to send, and its error is next's.
func pull(nc *nats.Conn, stream, consumer string, broken <-chan nats.Status, idle func() error) (*puller, error) {
	p := &puller{
		nc: nc, ask: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer,
		msgs: make(chan *nats.Msg, 2*batch), quiet: time.NewTimer(time.Hour), over: make(chan struct{}),
		broken: broken, idle: idle,
	}
	sub, err := nc.ChanSubscribe(nc.NewInbox(), p.msgs)
	if err != nil {
		return nil, err
	}
	p.sub, p.stop = sub, sync.OnceFunc(func() {
		close(p.over)
		_ = sub.Unsubscribe() // fails only with the connection
	})
	return p, nil
}

// next waits for a message until ctx ends. After an error the puller is of no more
// use. What has come is given first.
func (p *puller) next(ctx context.Context) (*nats.Msg, error) {
	for {
		if err := p.request(); err != nil {
			return nil, err
		}
		p.quiet.Reset(2 * heartbeat)
		select {
		case <-p.over:
			return nil, errStopped
		default:
		}
		var msg *nats.Msg
		select {
		case msg = <-p.msgs:
		default:
			var err error
			if msg, err = p.wait(ctx); err != nil {
				return nil, err
			}
		}
		if msg.Subject != p.sub.Subject {
			p.wanted--
			return msg, nil
		}
		if err := p.told(msg.Header); err != nil {
			return nil, err
		}
	}
}

// wait waits for whatever comes.
func (p *puller) wait(ctx context.Context) (*nats.Msg, error) {
	select {
	case msg := <-p.msgs:
		return msg, nil
	case <-p.broken:
		return nil, fmt.Errorf("%w: the connection broke", errSilent)
	case <-p.quiet.C:
		select {
		case msg := <-p.msgs: // it was this process that stood still
			return msg, nil
		default:
		}
		return nil, fmt.Errorf("%w for %v", errSilent, 2*heartbeat)
	case <-p.over:
		return nil, errStopped
	case <-ctx.Done():
		return nil, errStopped
	}
}

// request asks for more once half of what was asked for has come.
func (p *puller) request() error {
	if p.wanted > batch/2 {
		return nil
	}
	body, err := json.Marshal(struct {
		Batch     int           `json:"batch"`
		Expires   time.Duration `json:"expires"`
		Heartbeat time.Duration `json:"idle_heartbeat"`
	}{batch - p.wanted, asked, heartbeat})
	if err != nil {
		return err
	}
	p.wanted = batch
	err = p.nc.PublishRequest(p.ask, p.sub.Subject, body)
	if unanswered(err) {
		return fmt.Errorf("%w: %w", errSilent, err)
	}
	return err
}

// told takes what the server says of a request. An error means that there is no
// such consumer any more.
func (p *puller) told(h nats.Header) error {
	status, what := h.Get("Status"), h.Get("Description")
	switch {
	case status == "100": // it is still there
		return p.idle()
	case status == "404", status == "408", strings.Contains(what, "Batch Completed"):
		left, err := strconv.Atoi(h.Get("Nats-Pending-Messages"))
		if err != nil {
			left = p.wanted
		}
		p.wanted = max(0, p.wanted-left)
	case strings.Contains(what, "Leadership Change"), strings.Contains(what, "Server Shutdown"):
		return fmt.Errorf("%w: %s", errSilent, what)
	case status == "503": // nobody leads it now, or it is gone
		return fmt.Errorf("%w: nobody answers for it", errSilent)
	default:
		return fmt.Errorf("the server says of the consumer: %s %s", status, what)
	}
	return nil
}
