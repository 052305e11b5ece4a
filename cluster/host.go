package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// host is protoactor, narrowly: an actor system that is a cluster of one
// member, and the actors of the partitions that this node owns.
type host struct {
	system  *actor.ActorSystem
	cluster *cluster.Cluster
	runtime *actors.Runtime

	mu         sync.RWMutex
	partitions [messages.Partitions]*hosted
}

// hosted is the actor of a partition that is ours.
type hosted struct {
	pid  *actor.PID
	gone chan struct{} // closed when it has stopped
}

// agentKind is the kind under which protoactor knows all agents; the agent's
// own kind is part of its identity.
const agentKind = "agent"

// newHost makes the actor system. The library's member is never started: that
// opens a gRPC listener, sets a logger for all of gRPC's users in the process,
// gossips and sleeps a second, all for members that are elsewhere. Ours are in
// NATS, and what is asked for here, where an identity lives, needs none of it.
func newHost(rt *actors.Runtime, root string, logger *slog.Logger) *host {
	quiet := slog.New(atLeast{logger.Handler(), slog.LevelWarn})
	h := &host{runtime: rt}
	h.system = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }),
		actor.WithDeadLetterRequestLogging(false),
	)
	kind := cluster.NewKind(agentKind, actor.PropsFromFunc(func(actor.Context) {}))
	h.cluster = cluster.New(h.system, cluster.Configure(root, alone{}, h, remote.Configure("127.0.0.1", 0), cluster.WithKinds(kind)))
	h.cluster.IdentityLookup = h
	return h
}

// alone is the cluster provider of a member that is never started.
type alone struct{}

var errAlone = errors.New("nodes find one another over NATS")

// StartMember is never used.
func (alone) StartMember(*cluster.Cluster) error { return errAlone }

// StartClient is never used.
func (alone) StartClient(*cluster.Cluster) error { return errAlone }

// Shutdown has nothing to do: the node leaves NATS by itself.
func (alone) Shutdown(bool) error { return nil }

// Get is the partition actor that hosts an identity (an agent's full address);
// nil if this node does not own its partition. It makes host an IdentityLookup.
func (h *host) Get(id *cluster.ClusterIdentity) *actor.PID {
	a, err := messages.ParseAgentID(id.Identity)
	if err != nil {
		return nil
	}
	if p := h.hosted(a.Partition()); p != nil {
		return p.pid
	}
	return nil
}

func (h *host) hosted(p messages.Partition) *hosted {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.partitions[p]
}

// RemovePid does nothing: partition actors keep their address.
func (h *host) RemovePid(*cluster.ClusterIdentity, *actor.PID) {}

// Setup does nothing: the lookup is ready when it is made.
func (h *host) Setup(*cluster.Cluster, []string, bool) {}

// Shutdown does nothing: partitions are stopped one by one, when their lease goes.
func (h *host) Shutdown() {}

// open hosts a partition under epoch. The epoch is part of the actor's name, so
// that one that is slow to stop is in nobody's way.
func (h *host) open(p messages.Partition, epoch messages.Epoch) error {
	pid, err := h.system.Root.SpawnNamed(h.runtime.Partition(p, epoch), fmt.Sprintf("partition-%s-%d", p, epoch))
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.partitions[p] = &hosted{pid, make(chan struct{})}
	return nil
}

// shut stops a partition and its agents and returns when they have stopped.
// Whoever still waits for an answer from there is told then.
func (h *host) shut(p messages.Partition) {
	h.mu.Lock()
	was := h.partitions[p]
	h.partitions[p] = nil
	h.mu.Unlock()
	if was == nil {
		return
	}
	_ = h.system.Root.StopFuture(was.pid).Wait() // its only error is a timeout of ten seconds
	close(was.gone)
}

// unanswered bounds how long a command waits for its agent. The command may
// still be applied later; asked again under its id it has no second effect.
const unanswered = time.Minute

// ask sends a message to an agent's partition at once and gives a function
// that waits for the answer, as long as its ctx lasts. It must be called.
func (h *host) ask(a messages.AgentID, m any) (wait func(context.Context) (messages.Answer, error)) {
	pid, at := h.cluster.Get(a.Full(), agentKind), h.hosted(a.Partition())
	if at == nil || pid != at.pid {
		return func(context.Context) (messages.Answer, error) {
			return messages.Answer{}, messages.Refuse(messages.Unavailable, "this node does not own agent %s now: try again", a)
		}
	}
	mine := answers{make(chan any, 1)}
	registry := h.system.ProcessRegistry
	sender, _ := registry.Add(mine, "ask"+registry.NextId()) // no id comes twice
	h.system.Root.RequestWithCustomSender(pid, m, sender)
	return func(ctx context.Context) (messages.Answer, error) {
		defer registry.Remove(sender)
		return mine.wait(ctx, a, at.gone)
	}
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
	if answer, ok := m.(*messages.Answer); ok {
		return *answer, nil
	}
	return messages.Answer{}, messages.Refuse(messages.Unavailable, "agent %s is changing hands: try again with the same id", a)
}

// stop ends the actor system.
func (h *host) stop() { h.system.Shutdown() }

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
