package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// host is a node's actor system: the actors of the partitions that the node owns. Of protoactor it
// uses actors; members, ownership and messages between nodes are NATS.
type host struct {
	system  *actor.ActorSystem
	runtime *actors.Runtime
	router  *router
	logger  *slog.Logger
	// partitions are those that are hosted; nil: one is not.
	partitions [messages.Partitions]atomic.Pointer[hosted]
}

// hosted is the actor of a partition.
type hosted struct {
	pid  *actor.PID
	gone chan struct{} // closed when it has stopped
	// cancel cuts off what its agents do.
	cancel func()
	// requests is the subscription to what other nodes send to the partition.
	requests *nats.Subscription
}

// newHost returns a host without partitions; its router takes commands for any agent.
func newHost(nc *nats.Conn, subjects messages.Subjects, logger *slog.Logger) *host {
	quiet := slog.New(atLeast{logger.Handler(), slog.LevelWarn})
	h := &host{logger: logger}
	h.system = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }),
		actor.WithDeadLetterRequestLogging(false),
	)
	h.router = newRouter(h, nc, subjects, logger)
	return h
}

// partitionName returns the name of a partition's actor. The epoch is part of it, so that one that is
// slow to stop does not stand in the way of its successor on the same node.
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
	requests, err := h.router.serve(p, epoch, pid)
	if err != nil {
		h.system.Root.Stop(pid)
		return err
	}
	h.partitions[p].Store(&hosted{pid: pid, gone: make(chan struct{}), cancel: cancel, requests: requests})
	return nil
}

// shut stops a partition and its agents and returns when they have stopped, or after
// ten seconds, with a warning. Other nodes' requests end first: what the server has routed
// here by then is refused, so that its sender asks again at once.
func (h *host) shut(p messages.Partition) {
	was := h.partitions[p].Swap(nil)
	if was == nil {
		return
	}
	h.router.unserve(was.requests)
	was.cancel()
	if err := h.system.Root.StopFuture(was.pid).Wait(); err != nil {
		h.logger.Warn("a partition that is given up has not stopped in ten seconds; what it still writes is refused once it has another owner", "partition", p, "error", err)
	}
	close(was.gone)
}

// hosted returns the actor of a partition. Nil: it is not hosted here.
func (h *host) hosted(p messages.Partition) *hosted { return h.partitions[p].Load() }

// drain asks a partition's agents to begin nothing that must not be cut off, and waits
// until nothing of the kind runs there or ctx ends; it reports which.
func (h *host) drain(ctx context.Context, p messages.Partition) (quiet bool) {
	at := h.hosted(p)
	if at == nil {
		return true
	}
	sender, came, done := h.router.expect()
	defer done()
	h.system.Root.RequestWithCustomSender(at.pid, actors.Drain{}, sender)
	select {
	case <-came:
		return true
	case <-at.gone:
		return true
	case <-ctx.Done():
		return false
	}
}

// cancelDrain ends a drain: the partition is not given up after all.
func (h *host) cancelDrain(p messages.Partition) {
	if at := h.hosted(p); at != nil {
		h.system.Root.Send(at.pid, actors.CancelDrain{})
	}
}

// unanswered bounds how long a command waits for its agent. The command may
// still be applied later; asked again under its id it has no second effect.
const unanswered = time.Minute

// ask sends a message to an agent of a partition that this node owns, and waits for the answer. It is
// refused where the node does not own it.
func (h *host) ask(ctx context.Context, a messages.AgentID, m any) (messages.Answer, error) {
	at := h.hosted(a.Partition())
	if at == nil || !h.router.trusted() {
		return messages.Answer{}, errUnowned(a)
	}
	sender, came, done := h.router.expect()
	defer done()
	h.system.Root.RequestWithCustomSender(at.pid, m, sender)
	return at.wait(ctx, a, came)
}

// wait waits for an agent's answer, until the partition is gone.
func (at *hosted) wait(ctx context.Context, a messages.AgentID, came <-chan any) (messages.Answer, error) {
	within := time.NewTimer(unanswered)
	defer within.Stop()
	refuse := func(why error) (messages.Answer, error) {
		return messages.Answer{}, messages.Refuse(messages.Unavailable, "agent %s did not answer (%v): try again with the same id", a, why)
	}
	var m any
	select {
	case m = <-came:
	case <-ctx.Done():
		return refuse(ctx.Err())
	case <-within.C:
		return refuse(context.DeadlineExceeded)
	case <-at.gone:
		select {
		case m = <-came: // just before the end
		default:
		}
	}
	if answer, ok := m.(*messages.Answer); ok {
		return *answer, nil
	}
	return messages.Answer{}, errChangingHands(a)
}

func errUnowned(a messages.AgentID) *messages.Error {
	return messages.Refuse(messages.Unavailable, "no node that may act owns agent %s now: try again with the same id", a)
}

func errChangingHands(a messages.AgentID) *messages.Error {
	return messages.Refuse(messages.Unavailable, "agent %s is changing hands: try again with the same id", a)
}

// stop ends the actor system.
func (h *host) stop() { h.system.Shutdown() }

// atLeast is a log handler that drops records below its level.
type atLeast struct {
	slog.Handler
	level slog.Level
}

// Enabled reports whether records of this level are kept.
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
