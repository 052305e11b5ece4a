package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/cluster/transport"
	"github.com/reprise-dev/reprise/messages"
)

// host is a node's actor system with the actors of the partitions that the node owns, and
// the way to those of other nodes.
type host struct {
	self    string
	system  *actor.ActorSystem
	types   *transport.Types
	conn    *nats.Conn
	net     *transport.Transport
	runtime *actors.Runtime
	asking  asking
	logger  *slog.Logger
	// place is the living owner of a partition and its epoch; empty: nobody owns it.
	place func(messages.Partition) (node string, epoch messages.Epoch)
	// trusted says whether this node may act as an owner now.
	trusted func() bool
	// there returns when this node was last known to be there: neither frozen nor cut off.
	there func() time.Time
	// steady reports whether it was so around a time, once that is known.
	steady  func(time.Time) (steady, known bool)
	stopped chan struct{} // closed when the system stops

	mu         sync.RWMutex
	partitions [messages.Partitions]*hosted
	away       [messages.Partitions]*hosted // where other nodes host them, as was last seen
}

// hosted is the actor of a partition.
type hosted struct {
	pid  *actor.PID
	gone chan struct{} // closed when it has stopped, or is not the one any more
	// cancel cuts off what its agents do; nil: it is another node's.
	cancel func()
}

// newHost makes the actor system and what connects it with those of other nodes. Of protoactor it
// uses actors; members, ownership and messages between nodes are NATS.
func newHost(self, root string, nc *nats.Conn, place func(messages.Partition) (string, messages.Epoch), logger *slog.Logger) *host {
	quiet := slog.New(atLeast{logger.Handler(), slog.LevelWarn})
	h := &host{self: self, conn: nc, types: wire(), place: place, there: time.Now, logger: logger, stopped: make(chan struct{})}
	h.system = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }),
		actor.WithDeadLetterRequestLogging(false),
	)
	h.net = transport.New(transport.Config{Conn: nc, Root: root, Self: self, System: h.system, Types: h.types, Logger: logger})
	return h
}

// start sends again, each time the connection is made again, what was on its way to other nodes,
// until the host is stopped.
func (h *host) start() {
	connected := h.conn.StatusChanged(nats.CONNECTED)
	go func() {
		defer h.conn.RemoveStatusListener(connected)
		for {
			select {
			case _, open := <-connected:
				if !open { // the connection was closed
					connected = nil
				}
				h.asking.reconnected()
			case <-h.stopped:
				return
			}
		}
	}()
}

// where is the actor of an agent's partition, and what is closed when it is that no
// more; nil if nobody owns it now.
func (h *host) where(a messages.AgentID) (*actor.PID, chan struct{}) {
	p := a.Partition()
	h.mu.RLock()
	here, there := h.partitions[p], h.away[p]
	h.mu.RUnlock()
	if here != nil {
		if !h.trusted() {
			return nil, nil // others may have taken it
		}
		return here.pid, here.gone
	}
	node, epoch := h.place(p)
	if node == "" || node == h.self {
		return nil, nil
	}
	if there == nil || transport.NodeOf(there.pid) != node || there.pid.Id != partitionName(p, epoch) {
		there = h.moved(p, node, epoch)
	}
	return there.pid, there.gone
}

// moved notes where another node hosts a partition, and tells those who wait for
// answers from where it was.
func (h *host) moved(p messages.Partition, node string, epoch messages.Epoch) *hosted {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.away[p]
	is := &hosted{pid: transport.PID(node, partitionName(p, epoch)), gone: make(chan struct{})}
	if was != nil {
		if was.pid.Equal(is.pid) {
			return was
		}
		close(was.gone)
	}
	h.away[p] = is
	return is
}

// placed looks anew who owns a partition.
func (h *host) placed(p messages.Partition) {
	if node, epoch := h.place(p); node != "" && node != h.self {
		h.moved(p, node, epoch)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if was := h.away[p]; was != nil {
		close(was.gone)
		h.away[p] = nil
	}
}

// partitionName is that of a partition's actor. The epoch is part of it, so that what
// was sent to an owner never comes to a later one on the same node, and one that is
// slow to stop is in nobody's way.
func partitionName(p messages.Partition, epoch messages.Epoch) string {
	return fmt.Sprintf("partition-%s-%d", p, epoch)
}

// open hosts a partition under epoch.
func (h *host) open(p messages.Partition, epoch messages.Epoch) error {
	ctx, cancel := context.WithCancel(context.Background())
	if err := h.spawn(h.runtime.Partition(ctx, p, epoch), p, epoch, cancel); err != nil {
		cancel()
		return err
	}
	return nil
}

// openDamaged hosts a partition whose agents all answer with why.
func (h *host) openDamaged(p messages.Partition, epoch messages.Epoch, why *messages.Error) error {
	return h.spawn(actors.DamagedPartition(why), p, epoch, func() {})
}

func (h *host) spawn(props *actor.Props, p messages.Partition, epoch messages.Epoch, cancel func()) error {
	pid, err := h.system.Root.SpawnNamed(props, partitionName(p, epoch))
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.partitions[p] = &hosted{pid: pid, gone: make(chan struct{}), cancel: cancel}
	return nil
}

// shut stops a partition and its agents and returns when they have stopped, or after
// ten seconds, which it says. Whoever still waits for an answer from there is told then.
func (h *host) shut(p messages.Partition) {
	h.mu.Lock()
	was := h.partitions[p]
	h.partitions[p] = nil
	h.mu.Unlock()
	if was == nil {
		return
	}
	was.cancel()
	if err := h.system.Root.StopFuture(was.pid).Wait(); err != nil {
		h.logger.Warn("a partition that is given up has not stopped in ten seconds; what it still writes is refused once it has another owner", "partition", p, "error", err)
	}
	close(was.gone)
}

func (h *host) hosted(p messages.Partition) *hosted {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.partitions[p]
}

// drain asks a partition's agents to begin nothing that must not be cut off, and waits
// until nothing of the kind runs there or ctx ends; it says which.
func (h *host) drain(ctx context.Context, p messages.Partition) (quiet bool) {
	at := h.hosted(p)
	if at == nil {
		return true
	}
	mine := answers{make(chan any, 1)}
	registry := h.system.ProcessRegistry
	sender, _ := registry.Add(mine, "drain"+registry.NextId())
	defer registry.Remove(sender)
	h.system.Root.RequestWithCustomSender(at.pid, actors.Drain{}, sender)
	select {
	case <-mine.came:
		return true
	case <-at.gone:
		return true
	case <-ctx.Done():
		return false
	}
}

// stay ends a drain.
func (h *host) stay(p messages.Partition) {
	if at := h.hosted(p); at != nil {
		h.system.Root.Send(at.pid, actors.CancelDrain{})
	}
}

// unanswered bounds how long a command waits for its agent. The command may
// still be applied later; asked again under its id it has no second effect.
const unanswered = time.Minute

// ask sends a message to an agent's partition at once, on whatever node, and gives a
// function that waits for the answer, as long as its ctx lasts. It must be called.
func (h *host) ask(a messages.AgentID, m any) (wait func(context.Context) (messages.Answer, error)) {
	pid, gone := h.where(a)
	return h.sendTo(pid, gone, a, m).wait
}

// askHere is ask for what an owner asks of its own agents: it goes to no other node.
func (h *host) askHere(a messages.AgentID, m any) (wait func(context.Context) (messages.Answer, error)) {
	pid, gone := h.where(a)
	if pid != nil && transport.NodeOf(pid) != h.self {
		pid = nil
	}
	return h.sendTo(pid, gone, a, m).wait
}

// sent is a message on its way to an agent's partition, and what waits for the answer;
// to is nil if nobody was there to send it to.
type sent struct {
	to   *actor.PID
	wait func(context.Context) (messages.Answer, error)
}

// sendTo sends a message to a partition's actor, which is that until gone is closed.
// What it gives must be waited for.
func (h *host) sendTo(pid *actor.PID, gone chan struct{}, a messages.AgentID, m any) *sent {
	if pid == nil {
		return &sent{nil, func(context.Context) (messages.Answer, error) {
			return messages.Answer{}, messages.Refuse(messages.Unavailable, "nobody who may act owns agent %s now: try again with the same id", a)
		}}
	}
	mine := answers{make(chan any, 1)}
	registry := h.system.ProcessRegistry
	sender, _ := registry.Add(mine, "ask"+registry.NextId()) // no id comes twice
	h.system.Root.RequestWithCustomSender(pid, m, sender)
	return &sent{pid, func(ctx context.Context) (messages.Answer, error) {
		defer registry.Remove(sender)
		return mine.wait(ctx, a, gone)
	}}
}

// answers is the process that an answer is sent to.
type answers struct{ came chan any }

// SendUserMessage takes the answer; more than one is not expected.
func (p answers) SendUserMessage(_ *actor.PID, m any) {
	select {
	case p.came <- actor.UnwrapEnvelopeMessage(m):
	default:
	}
}

// SendSystemMessage does nothing: nobody watches or stops an ask.
func (answers) SendSystemMessage(*actor.PID, any) {}

// Stop does nothing.
func (answers) Stop(*actor.PID) {}

func (p answers) wait(ctx context.Context, a messages.AgentID, gone chan struct{}) (messages.Answer, error) {
	within, cancel := context.WithTimeout(ctx, unanswered)
	defer cancel()
	var m any
	select {
	case m = <-p.came:
	case <-within.Done():
		return messages.Answer{}, messages.Refuse(messages.Unavailable, "agent %s did not answer (%v): try again with the same id", a, within.Err())
	case <-gone:
		select {
		case m = <-p.came: // just before the end
		default:
		}
	}
	switch m := m.(type) {
	case *messages.Answer:
		return *m, nil
	case *transport.Undeliverable:
		return messages.Answer{}, undeliverable(a, m.Err)
	}
	return messages.Answer{}, messages.Refuse(messages.Unavailable, "agent %s is changing hands: try again with the same id", a)
}

// undeliverable is what the sender of a command is told that could not be sent to
// another node.
func undeliverable(a messages.AgentID, err error) *messages.Error {
	if errors.Is(err, nats.ErrMaxPayload) {
		return messages.Refuse(messages.TooLarge, "the command is too near to what the NATS server takes (max_payload) to be sent on to the node of agent %s: make it 1 KiB shorter", a)
	}
	return messages.Refuse(messages.Unavailable, "agent %s cannot be reached (%v): try again with the same id", a, err)
}

// stop ends the actor system.
func (h *host) stop() {
	close(h.stopped)
	h.system.Shutdown()
}

// atLeast is a log handler that hears only what is at least at its level.
type atLeast struct {
	slog.Handler
	level slog.Level
}

// Enabled says whether a record of this level is heard.
func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

// WithAttrs keeps the level.
func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup keeps the level.
func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}

// delivered is an actors.Deliver on the wire.
type delivered struct {
	Agent   string         `json:"a"`
	Type    string         `json:"t"`
	Command []byte         `json:"c"`
	Cause   messages.Cause `json:"u"`
	// Deadline is absent where there is none.
	Deadline time.Time `json:"d,omitzero"`
	Sent     time.Time `json:"s,omitzero"`
}

// wire are the messages that travel between nodes.
func wire() *transport.Types {
	types := transport.NewTypes()
	transport.Register[messages.Answer](types, "answer")
	transport.RegisterAs(types, "deliver", encodeDeliver, decodeDeliver)
	gateway.Travel(types)
	return types
}

func encodeDeliver(d *actors.Deliver) ([]byte, error) {
	c, err := messages.PackCommand(d.Command)
	if err != nil {
		return nil, err
	}
	return messages.Pack(&delivered{d.Agent.Full(), d.Command.CommandType(), c, d.Cause, d.Deadline, d.Sent})
}

func decodeDeliver(b []byte) (*actors.Deliver, error) {
	var d delivered
	if err := messages.UnpackKnown(b, &d); err != nil {
		return nil, err
	}
	a, err := messages.ParseAgentID(d.Agent)
	if err != nil {
		return nil, err
	}
	c, err := messages.UnpackCommand(d.Type, d.Command)
	return &actors.Deliver{Agent: a, Command: c, Cause: d.Cause, Deadline: d.Deadline, Sent: d.Sent}, err
}
