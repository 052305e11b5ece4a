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
	"google.golang.org/grpc"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// host is protoactor, narrowly: an actor system that is a cluster of one
// member, and the actors of the partitions that this node owns.
type host struct {
	system  *actor.ActorSystem
	cluster *cluster.Cluster
	runtime *actors.Runtime
	ready   chan error

	mu         sync.RWMutex
	partitions [messages.Partitions]*actor.PID
}

// agentKind is the kind under which protoactor knows all agents; the agent's
// own kind is part of its identity.
const agentKind = "agent"

// newHost starts the actor system. StartMember sleeps a second after it is
// done, so it runs beside and tells when it is ready (research: protoactor
// section 7).
func newHost(ctx context.Context, rt *actors.Runtime, root string, logger *slog.Logger) (*host, error) {
	quiet := slog.New(atLeast{logger.Handler(), slog.LevelWarn})
	h := &host{runtime: rt, ready: make(chan error, 1)}
	h.system = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }),
		actor.WithDeadLetterRequestLogging(false),
	)
	closed := remote.Configure("127.0.0.1", 0, remote.WithEndpointWriterQueueSize(1024),
		remote.WithServerOptions(grpc.StreamInterceptor(refuseStream), grpc.UnaryInterceptor(refuseCall)))
	cfg := cluster.Configure(root, alone{h}, h, closed, cluster.WithKinds(cluster.NewKind(agentKind, actor.PropsFromFunc(func(actor.Context) {}))))
	// Gossip is parked: membership is in NATS.
	cfg.GossipInterval, cfg.HeartbeatExpiration = time.Hour, 1000*time.Hour
	h.cluster = cluster.New(h.system, cfg)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				h.tell(fmt.Errorf("start the actor system: %v", p))
			}
		}()
		h.cluster.StartMember()
	}()
	select {
	case err := <-h.ready:
		return h, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *host) tell(err error) {
	select {
	case h.ready <- err:
	default:
	}
}

var errClosed = errors.New("reprise nodes talk over NATS; this port serves nobody")

func refuseStream(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
	return errClosed
}

func refuseCall(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
	return nil, errClosed
}

// alone is the cluster provider of a cluster of one.
type alone struct{ h *host }

// StartMember publishes a topology of this member alone.
func (m alone) StartMember(c *cluster.Cluster) error {
	host, port, err := c.ActorSystem.GetHostPort()
	if err != nil {
		return err
	}
	c.MemberList.UpdateClusterTopology(cluster.Members{{Id: c.ActorSystem.ID, Host: host, Port: int32(port), Kinds: c.GetClusterKinds()}})
	m.h.tell(nil)
	return nil
}

// StartClient is never used: every node is a member.
func (alone) StartClient(*cluster.Cluster) error { return errors.New("every node is a member") }

// Shutdown has nothing to do: the node leaves NATS by itself.
func (alone) Shutdown(bool) error { return nil }

// Get is the partition actor that hosts an identity (an agent's full address);
// nil if this node does not own its partition. It makes host an IdentityLookup.
func (h *host) Get(id *cluster.ClusterIdentity) *actor.PID {
	a, err := messages.ParseAgentID(id.Identity)
	if err != nil {
		return nil
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.partitions[a.Partition()]
}

// RemovePid does nothing: partition actors keep their address.
func (h *host) RemovePid(*cluster.ClusterIdentity, *actor.PID) {}

// Setup does nothing: the lookup is ready when it is made.
func (h *host) Setup(*cluster.Cluster, []string, bool) {}

// Shutdown does nothing: partitions are stopped one by one, when their lease goes.
func (h *host) Shutdown() {}

// open hosts a partition under epoch.
func (h *host) open(p messages.Partition, epoch messages.Epoch) error {
	pid, err := h.system.Root.SpawnNamed(h.runtime.Partition(p, epoch), "partition-"+p.String())
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.partitions[p] = pid
	return nil
}

// shut stops a partition and its agents and returns when they have stopped.
func (h *host) shut(p messages.Partition) {
	h.mu.Lock()
	pid := h.partitions[p]
	h.partitions[p] = nil
	h.mu.Unlock()
	if pid != nil {
		_ = h.system.Root.StopFuture(pid).Wait() // its only error is a timeout of ten seconds
	}
}

// unanswered bounds how long a command waits for its agent. The command may
// still be applied later; asked again under its id it has no second effect.
const unanswered = time.Minute

// ask sends a message to an agent's partition at once and gives a function
// that waits for the answer.
func (h *host) ask(a messages.AgentID, m any) (wait func() (actors.Answer, error)) {
	pid := h.cluster.Get(a.Full(), agentKind)
	if pid == nil {
		return func() (actors.Answer, error) {
			return actors.Answer{}, messages.Refuse(messages.Unavailable, "this node does not own agent %s now: try again", a)
		}
	}
	future := h.system.Root.RequestFuture(pid, m, unanswered)
	return func() (actors.Answer, error) {
		result, err := future.Result()
		if err != nil {
			return actors.Answer{}, messages.Refuse(messages.Unavailable, "agent %s did not answer (%v): try again with the same id", a, err)
		}
		answer, ok := result.(*actors.Answer)
		if !ok {
			return actors.Answer{}, messages.Refuse(messages.Unavailable, "agent %s is changing hands: try again with the same id", a)
		}
		return *answer, nil
	}
}

// stop ends the actor system. Never cluster.Shutdown(true): it sleeps, and
// leaves before its actors have stopped.
func (h *host) stop() { h.cluster.Shutdown(false) }

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
