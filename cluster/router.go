package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// router sends commands to the owners of their agents and waits for the answers. The owner of each
// partition subscribes to one subject of NATS, acknowledges at once what it receives there, and answers
// once the agent has; so an endpoint need not know who the owner is. Where no node acknowledges, the
// endpoint sends the command again under its id, within its deadline. This is the one place that does so.
// Safe for concurrent use.
type router struct {
	host     *host
	conn     *nats.Conn
	subjects messages.Subjects
	logger   *slog.Logger
	// inbox is the subject below which answers come, one token for each command.
	inbox  string
	tokens atomic.Uint64
	// waiting are the channels that answers are waited for on, by token.
	waiting sync.Map
	order   order
	// newest is the highest epoch that an owner of each partition has answered under. What an
	// earlier one still sends is dropped.
	newest [messages.Partitions]atomic.Uint64
	// routed counts the commands that were sent to other nodes, repeated those that were sent again.
	routed, repeated atomic.Int64

	// trusted reports whether this node may act as an owner now.
	trusted func() bool
	// there returns when this node was last known to be neither frozen nor cut off.
	there func() time.Time
	// steady reports whether it was so around a time, once that is known.
	steady func(time.Time) (steady, known bool)
	// owner returns the node that owns a partition, for error messages.
	owner func(messages.Partition) string
	// local receives what other nodes send to the agents of a partition beside commands.
	local local
}

// local is what an owner is asked by other nodes' endpoints beside commands. It must not block.
type local interface {
	// Last returns the numbers of the newest events of agents.
	Last(agents []messages.AgentID) []messages.EventNumber
	// Delta hands a piece of a child's answer to those who follow its parent.
	Delta(actors.Delta)
}

const (
	// routeFor is how long a command is tried at most.
	routeFor = 30 * time.Second
	// acknowledgedIn is how long an owner may take to acknowledge a command: far more than a
	// healthy one needs.
	acknowledgedIn = 500 * time.Millisecond
	// A command that was acknowledged and not answered is sent again after answeredIn, then
	// after twice that, up to mostAnsweredIn: its owner died, or the answer was lost.
	answeredIn     = time.Second
	mostAnsweredIn = 8 * time.Second
)

// The addresses of the processes that receive answers: for this node, or for the one that has sent
// the command.
const (
	here      = "here"
	elsewhere = "elsewhere"
)

func newRouter(h *host, nc *nats.Conn, subjects messages.Subjects, logger *slog.Logger) *router {
	r := &router{host: h, conn: nc, subjects: subjects, logger: logger, inbox: nc.NewInbox() + "."}
	r.trusted, r.there = func() bool { return false }, time.Now
	r.steady = func(time.Time) (steady, known bool) { return true, true }
	h.system.ProcessRegistry.RegisterAddressResolver(func(*actor.PID) (actor.Process, bool) { return answers{r}, true })
	return r
}

// open begins to receive answers, until the connection is closed.
func (r *router) open() error {
	_, err := r.conn.Subscribe(r.inbox+"*", r.answered)
	return err
}

// request is what an endpoint sends to the owner of a partition: one of its fields.
type request struct {
	Command *routedCommand `json:"c,omitempty"`
	// Last are agents whose newest event numbers are asked for.
	Last []string `json:"l,omitempty"`
	// Delta is a piece of the answer of a child of one of the partition's agents.
	Delta *routedDelta `json:"d,omitempty"`
}

// routedCommand is an actors.Deliver on the wire.
type routedCommand struct {
	Agent   string         `json:"a"`
	Type    string         `json:"t"`
	Command []byte         `json:"c"`
	Cause   messages.Cause `json:"u"`
	// Deadline is absent where there is none.
	Deadline time.Time `json:"d,omitzero"`
	Sent     time.Time `json:"s,omitzero"`
	// Trace is absent where there is none.
	Trace messages.TraceContext `json:"w,omitempty"`
}

// routedDelta is an actors.Delta on the wire.
type routedDelta struct {
	Agent string          `json:"a"`
	Turn  messages.TurnID `json:"t"`
	Call  messages.CallID `json:"c"`
	Kind  string          `json:"k"`
	Text  string          `json:"x"`
	Child string          `json:"d"`
}

// response is what the owner sends back: without Answer and Last it acknowledges a command.
type response struct {
	Epoch  messages.Epoch         `json:"e"`
	Answer *messages.Answer       `json:"a,omitempty"`
	Last   []messages.EventNumber `json:"l,omitempty"`
}

// acknowledged and unowned come in place of an answer: the owner has a command, and no node
// subscribes to the partition's requests.
type (
	acknowledged struct{}
	unowned      struct{}
)

// expect returns the sender to name in a command, and where the answer comes. done must be called.
func (r *router) expect() (sender *actor.PID, came <-chan any, done func()) {
	token, c, done := r.expectAt()
	return actor.NewPID(here, token), c, done
}

func (r *router) expectAt() (token string, came <-chan any, done func()) {
	token = strconv.FormatUint(r.tokens.Add(1), 36)
	c := make(chan any, 4) // more than one command's acknowledgements and answers
	r.waiting.Store(token, c)
	return token, c, func() { r.waiting.Delete(token) }
}

// arrived hands over what came for a token. What is not waited for any more is dropped.
func (r *router) arrived(token string, m any) {
	if c, ok := r.waiting.Load(token); ok {
		select {
		case c.(chan any) <- m:
		default:
		}
	}
}

// answered receives what an owner, or the server in its place, has sent.
func (r *router) answered(m *nats.Msg) {
	partition, token, _ := strings.Cut(m.Subject[len(r.inbox):], "-")
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		r.arrived(token, unowned{})
		return
	}
	p, err := strconv.Atoi(partition)
	var res response
	if err == nil && (p < 0 || p >= messages.Partitions) {
		err = errors.New("no such partition")
	}
	if err == nil {
		err = messages.UnpackKnown(m.Data, &res)
	}
	if err != nil {
		r.logger.Warn("the answer of another node cannot be read and is dropped", "error", err)
		return
	}
	if !r.isNewest(p, res.Epoch) {
		return
	}
	if res.Answer != nil {
		r.arrived(token, res.Answer)
	} else {
		r.arrived(token, acknowledged{})
	}
}

// isNewest reports whether no later owner of the partition has answered yet.
func (r *router) isNewest(p int, epoch messages.Epoch) bool {
	for {
		newest := r.newest[p].Load()
		if uint64(epoch) <= newest {
			return uint64(epoch) == newest
		}
		if r.newest[p].CompareAndSwap(newest, uint64(epoch)) {
			return true
		}
	}
}

// deliver queues a command of an endpoint behind those for its agent, and returns a
// function that sends it and waits for the answer: as long as its ctx lasts, and for routeFor at
// most; an input is not sent again after its own deadline. It must be called. What a node reads
// after it was frozen, or cut off, may have waited since then, so the time counts from when the node was
// last known to be there.
func (r *router) deliver(d *actors.Deliver) (wait func(context.Context) (messages.Answer, error)) {
	read := time.Now()
	d.Sent = r.there()
	d.Deadline = d.Sent.Add(routeFor)
	mine := r.order.join(d.Agent)
	return func(ctx context.Context) (messages.Answer, error) {
		defer r.order.leave(d.Agent, mine)
		ctx, cancel := context.WithTimeout(ctx, routeFor)
		defer cancel()
		if err := mine.wait(ctx); err != nil {
			return messages.Answer{}, messages.Refuse(messages.Unavailable, "agent %s could not be asked in time (%v): try again with the same id", d.Agent, err)
		}
		return r.again(ctx, d, read)
	}
}

// again sends a command until there is an answer that sending it again cannot change.
func (r *router) again(ctx context.Context, d *actors.Deliver, read time.Time) (messages.Answer, error) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 20*time.Millisecond, 200*time.Millisecond
	for patience := answeredIn; ; patience = min(2*patience, mostAnsweredIn) {
		answer, err := r.once(ctx, d, patience)
		if err == nil && answer.Err != nil {
			err = answer.Err
		}
		var refused *messages.Error
		if err == nil || !errors.As(err, &refused) || refused.Code != messages.Unavailable {
			return answer, r.unknownKind(d.Agent, err)
		}
		if answer.N != 0 { // it may be for an earlier life
			if !d.Sent.Before(read) || !r.wasSteady(ctx, read) {
				return answer, err // only its sender knows whether it is still wanted
			}
			fresh := *d
			fresh.Sent, d = read, &fresh
		}
		if in, ok := d.Command.(messages.Input); ok && in.Deadline != nil && !time.Now().Before(*in.Deadline) || !time.Now().Before(d.Deadline) {
			return answer, err
		}
		r.repeated.Add(1)
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
			return messages.Answer{}, err
		}
	}
}

// once sends a command to the owner of its agent, on this node or another one.
func (r *router) once(ctx context.Context, d *actors.Deliver, patience time.Duration) (messages.Answer, error) {
	if r.host.hosted(d.Agent.Partition()) != nil && r.trusted() {
		return r.host.ask(ctx, d.Agent, d)
	}
	r.routed.Add(1)
	p := d.Agent.Partition()
	token, came, done := r.expectAt()
	defer done()
	if err := r.send(d, r.inbox+p.String()+"-"+token); err != nil {
		return messages.Answer{}, err
	}
	within := time.NewTimer(acknowledgedIn)
	defer within.Stop()
	for {
		select {
		case m := <-came:
			switch m := m.(type) {
			case *messages.Answer:
				return *m, nil
			case acknowledged:
				within.Reset(patience)
			default:
				return messages.Answer{}, errUnowned(d.Agent)
			}
		case <-within.C:
			return messages.Answer{}, messages.Refuse(messages.Unavailable, "the owner of agent %s does not answer: try again with the same id", d.Agent)
		case <-ctx.Done():
			return messages.Answer{}, messages.Refuse(messages.Unavailable, "agent %s did not answer (%v): try again with the same id", d.Agent, ctx.Err())
		}
	}
}

// send publishes a command to the owner of its agent.
func (r *router) send(d *actors.Deliver, reply string) error {
	c, err := messages.PackCommand(d.Command)
	if err != nil {
		return err
	}
	err = r.publish(d.Agent.Partition(), reply, &request{Command: &routedCommand{d.Agent.Full(), d.Command.CommandType(), c, d.Cause, d.Deadline, d.Sent, d.Trace}})
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return messages.Refuse(messages.TooLarge, "the command is too near to what the NATS server takes (max_payload) to be sent on to the node of agent %s: make it 1 KiB shorter", d.Agent)
	case err != nil:
		return messages.Refuse(messages.Unavailable, "agent %s cannot be reached (%v): try again with the same id", d.Agent, err)
	}
	return nil
}

func (r *router) publish(p messages.Partition, reply string, req *request) error {
	b, err := messages.Pack(req)
	if err != nil {
		return err
	}
	return r.conn.PublishMsg(&nats.Msg{Subject: r.subjects.Owner(p), Reply: reply, Data: b})
}

// wasSteady waits until it is known whether this node was neither frozen nor cut off when it
// read something, and reports that.
func (r *router) wasSteady(ctx context.Context, read time.Time) bool {
	for {
		steady, known := r.steady(read)
		if known || !steady {
			return steady
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
}

// unknownKind adds to the refusal of an agent whose owner does not define its kind: an endpoint admits
// the kinds of all nodes.
func (r *router) unknownKind(a messages.AgentID, err error) error {
	var refused *messages.Error
	if !errors.As(err, &refused) || refused.Code != messages.UnknownKind {
		return err
	}
	return messages.Refuse(messages.Unavailable, "agent %s belongs to node %s, which defines no kind %q, though another node does: start all nodes with the same agents (what is published to the input subject is held until then)",
		a, r.owner(a.Partition()), a.Kind)
}

// Last asks the owner of a partition for the numbers of the newest events of some of its agents.
func (r *router) Last(ctx context.Context, p messages.Partition, agents []messages.AgentID) ([]messages.EventNumber, error) {
	req := &request{Last: make([]string, len(agents))}
	for i, a := range agents {
		req.Last[i] = a.Full()
	}
	b, err := messages.Pack(req)
	if err != nil {
		return nil, err
	}
	msg, err := r.conn.RequestWithContext(ctx, r.subjects.Owner(p), b)
	if err != nil {
		return nil, err
	}
	var res response
	if err = messages.UnpackKnown(msg.Data, &res); err == nil && len(res.Last) != len(agents) {
		err = fmt.Errorf("%d numbers for %d agents", len(res.Last), len(agents))
	}
	if err == nil && !r.isNewest(int(p), res.Epoch) {
		err = fmt.Errorf("partition %s has another owner than the one that answered", p)
	}
	return res.Last, err
}

// Below sends a piece of a child's answer to the owner of its parent, which is d.Agent. It is not
// kept where that cannot be reached.
func (r *router) Below(d actors.Delta) {
	_ = r.publish(d.Agent.Partition(), "", &request{Delta: &routedDelta{d.Agent.Full(), d.Turn, d.Call, d.Kind, d.Text, d.Child}})
}

// serve begins to receive what other nodes send to a partition's actor under an epoch.
func (r *router) serve(p messages.Partition, epoch messages.Epoch, pid *actor.PID) (*nats.Subscription, error) {
	return r.conn.Subscribe(r.subjects.Owner(p), func(m *nats.Msg) {
		if !r.trusted() {
			return // another node may own it
		}
		if m.Reply != "" && r.subjects.AllowReply("", m.Reply) != nil {
			return // not of a node
		}
		err := r.receive(epoch, pid, m)
		if err != nil {
			r.logger.Warn("a request of another node cannot be read and is refused", "partition", p, "error", err)
			r.respond(m.Reply, epoch, &messages.Answer{Err: messages.Refuse(messages.Unavailable, "partition %s's owner cannot read the request (%v): run one version on all nodes", p, err)})
		}
	})
}

// unserve ends that, once the server knows: what is sent from then on comes back to its
// sender at once.
func (r *router) unserve(requests *nats.Subscription) {
	if requests.Drain() == nil && r.conn.IsConnected() {
		_ = r.conn.FlushTimeout(time.Second) // a broken connection has no subscriptions
	}
}

// receive handles a request of another node's endpoint. It does not block.
func (r *router) receive(epoch messages.Epoch, pid *actor.PID, m *nats.Msg) error {
	var req request
	if err := messages.UnpackKnown(m.Data, &req); err != nil {
		return err
	}
	switch {
	case req.Command != nil:
		d, err := req.Command.decode()
		if err != nil {
			return err
		}
		r.respond(m.Reply, epoch, nil)
		r.host.system.Root.RequestWithCustomSender(pid, d, actor.NewPID(elsewhere, strconv.FormatUint(uint64(epoch), 10)+" "+m.Reply))
		return nil
	case req.Delta != nil:
		a, err := messages.ParseAgentID(req.Delta.Agent)
		if err == nil {
			d := req.Delta
			r.local.Delta(actors.Delta{Agent: a, Turn: d.Turn, Call: d.Call, Kind: d.Kind, Text: d.Text, Child: d.Child})
		}
		return err
	}
	agents := make([]messages.AgentID, len(req.Last))
	for i, id := range req.Last {
		var err error
		if agents[i], err = messages.ParseAgentID(id); err != nil {
			return err
		}
	}
	r.publishResponse(m.Reply, &response{Epoch: epoch, Last: r.local.Last(agents)})
	return nil
}

func (c *routedCommand) decode() (*actors.Deliver, error) {
	a, err := messages.ParseAgentID(c.Agent)
	if err != nil {
		return nil, err
	}
	command, err := messages.UnpackCommand(c.Type, c.Command)
	return &actors.Deliver{Agent: a, Command: command, Cause: c.Cause, Deadline: c.Deadline, Sent: c.Sent, Trace: c.Trace}, err
}

// respond sends an answer to the endpoint that has sent a command; nil acknowledges it.
func (r *router) respond(reply string, epoch messages.Epoch, answer *messages.Answer) {
	r.publishResponse(reply, &response{Epoch: epoch, Answer: answer})
}

func (r *router) publishResponse(reply string, res *response) {
	if reply == "" {
		return
	}
	b, err := messages.Pack(res)
	if err == nil {
		err = r.conn.Publish(reply, b)
	}
	if err != nil { // the endpoint sends the command again
		r.logger.Debug("an answer could not be sent to another node", "error", err)
	}
}

// answers is the process behind the sender of a command.
type answers struct{ r *router }

// SendUserMessage hands over an answer that is waited for on this node, or sends it to the
// node that has sent the command. A node that is not trusted any more answers nothing but that it is to be
// sent again.
func (a answers) SendUserMessage(pid *actor.PID, m any) {
	m = actor.UnwrapEnvelopeMessage(m)
	if pid.Address == here {
		a.r.arrived(pid.Id, m)
		return
	}
	epoch, reply, _ := strings.Cut(pid.Id, " ")
	e, _ := strconv.ParseUint(epoch, 10, 64) // as receive wrote it
	answer, ok := m.(*messages.Answer)
	if !ok || !a.r.trusted() {
		answer = &messages.Answer{Err: messages.Refuse(messages.Unavailable, "the agent is changing hands: try again with the same id")}
	}
	a.r.respond(reply, messages.Epoch(e), answer)
}

// SendSystemMessage does nothing: no actor watches or stops a sender.
func (answers) SendSystemMessage(*actor.PID, any) {}

// Stop does nothing.
func (answers) Stop(*actor.PID) {}
