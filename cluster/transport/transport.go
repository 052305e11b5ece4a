// Package transport carries messages between the actors of a cluster's nodes: in
// msgpack, over NATS, on a subject that each node has of its own.
//
// # Guarantees
//
//   - A PID with another node's address works wherever protoactor takes a PID.
//     There is no port that anyone could reach.
//   - What one node sends to another comes in the order in which it was sent, or
//     does not come.
//   - A message that cannot come to its process is told to its sender, at once if
//     nobody listens on that node: as an [actor.DeadLetterResponse], or as an
//     [Undeliverable] that says why. Silence is possible all the same (a node that
//     is frozen, a connection that is made anew): whoever asks must bound its
//     waiting and ask again.
//   - A message of an unknown type, or one that cannot be decoded, is a dead letter
//     and harms nobody.
//
// Only messages of users travel: watching and stopping an actor of another node does
// nothing. Whoever may publish to the subjects of nodes may speak for any node: they
// belong to the account of the nodes alone.
package transport

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// Config says what is connected.
type Config struct {
	Conn *nats.Conn
	// Root is the first token of all subjects.
	Root string
	// Self is this node's id: the address of its processes.
	Self   string
	System *actor.ActorSystem
	Types  *Types
	Logger *slog.Logger
}

// Transport is a node's part of the transport. Safe for concurrent use.
type Transport struct {
	cfg     Config
	returns string // where the server says that nobody has heard a message
	subs    []*nats.Subscription
}

// Undeliverable is told to the sender of a message that will never come, as it is.
type Undeliverable struct{ Err error }

// New makes the system's processes known under the node's address. It must be called
// before anything is spawned there. Messages of others come once it is opened.
func New(cfg Config) *Transport {
	t := &Transport{cfg: cfg, returns: cfg.Conn.NewInbox()}
	cfg.System.ProcessRegistry.Address = cfg.Self
	cfg.System.ProcessRegistry.RegisterAddressResolver(func(pid *actor.PID) (actor.Process, bool) {
		return remote{t}, true
	})
	return t
}

// PID is that of a process on a node.
func PID(node, name string) *actor.PID { return actor.NewPID(node, name) }

// NodeOf is the node that a process is on.
func NodeOf(pid *actor.PID) string { return pid.Address }

// Open begins to receive.
func (t *Transport) Open() error {
	for subject, handle := range map[string]nats.MsgHandler{
		t.subject(t.cfg.Self): func(m *nats.Msg) { t.receive(m.Data) },
		t.returns + ".*":      t.returned,
	} {
		sub, err := t.cfg.Conn.Subscribe(subject, handle)
		if err == nil {
			err = sub.SetPendingLimits(-1, mostPending)
		}
		if err != nil {
			return err
		}
		t.subs = append(t.subs, sub)
	}
	return nil
}

// mostPending is how many bytes may wait to be handed to their processes.
const mostPending = 256 << 20

// Close ends the receiving. What is sent from here on goes out while the connection
// is there.
func (t *Transport) Close() {
	for _, s := range t.subs {
		_ = s.Unsubscribe() // a closed connection has none
	}
}

// Serve registers a process of that name at which other nodes' messages are handled,
// one after the other and while all others wait: handle must not block. It ends by
// stop.
func (t *Transport) Serve(name string, handle func(from *actor.PID, m any)) (pid *actor.PID, stop func()) {
	registry := t.cfg.System.ProcessRegistry
	pid, _ = registry.Add(process(handle), name)
	return pid, func() { registry.Remove(pid) }
}

// Name gives a name for a process that no other has.
func (t *Transport) Name(of string) string { return of + t.cfg.System.ProcessRegistry.NextId() }

// Send sends m from one process to another, on whatever node; from may be nil.
func (t *Transport) Send(to, from *actor.PID, m any) {
	t.cfg.System.Root.RequestWithCustomSender(to, m, from)
}

// process is a function as a process.
type process func(from *actor.PID, m any)

// SendUserMessage hands a message over.
func (p process) SendUserMessage(_ *actor.PID, m any) {
	_, m, from := actor.UnwrapEnvelope(m)
	p(from, m)
}

// SendSystemMessage does nothing: nobody watches such a process.
func (process) SendSystemMessage(*actor.PID, any) {}

// Stop does nothing.
func (process) Stop(*actor.PID) {}

func (t *Transport) subject(node string) string { return "_actor." + t.cfg.Root + ".to." + node }

// remote stands for the processes of other nodes.
type remote struct{ t *Transport }

// SendUserMessage sends a message to where pid is.
func (r remote) SendUserMessage(pid *actor.PID, m any) {
	_, m, from := actor.UnwrapEnvelope(m)
	if err := r.t.send(pid, from, m); err != nil {
		r.t.tell(from, &Undeliverable{err})
	}
}

// SendSystemMessage does nothing: see the package.
func (remote) SendSystemMessage(*actor.PID, any) {}

// Stop does nothing.
func (remote) Stop(*actor.PID) {}

// envelope is a message between the processes of two nodes, as it is sent.
type envelope struct {
	// To is the process on the node that receives it.
	To string `json:"t"`
	// From and Node are the process that is answered and the node that it is on.
	// Empty: no process is.
	From string `json:"f,omitempty"`
	Node string `json:"n,omitempty"`
	// Type names what Body is.
	Type string `json:"y"`
	Body []byte `json:"b,omitempty"`
}

func (t *Transport) send(to, from *actor.PID, m any) error {
	name, body, err := t.cfg.Types.encode(m)
	if err != nil {
		return err
	}
	e := &envelope{To: to.Id, Type: name, Body: body}
	msg := &nats.Msg{Subject: t.subject(NodeOf(to))}
	if from != nil {
		e.From, e.Node = from.Id, NodeOf(from)
		msg.Reply = t.returns + "." + hex.EncodeToString([]byte(from.Id))
	}
	if msg.Data, err = messages.Pack(e); err != nil {
		return err
	}
	return t.cfg.Conn.PublishMsg(msg)
}

// returned hears from the server that nobody listens where a process has sent
// something.
func (t *Transport) returned(m *nats.Msg) {
	id, err := hex.DecodeString(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	if err == nil && m.Header.Get("Status") == "503" {
		t.tell(PID(t.cfg.Self, string(id)), &actor.DeadLetterResponse{})
	}
}

// tell tells a sender what became of its message, if it is still there.
func (t *Transport) tell(sender *actor.PID, what any) {
	if sender == nil {
		return
	}
	if NodeOf(sender) != t.cfg.Self {
		t.cfg.System.Root.Send(sender, what)
		return
	}
	if p, ok := t.cfg.System.ProcessRegistry.GetLocal(sender.Id); ok {
		p.SendUserMessage(sender, what)
	}
}

// receive hands a message of another node to its process.
func (t *Transport) receive(data []byte) {
	e := new(envelope)
	err := messages.UnpackKnown(data, e)
	if err == nil && (e.To == "" || e.Type == "") {
		err = errors.New("an envelope names a process and a type")
	}
	if err != nil {
		t.cfg.Logger.Warn("what came from another node cannot be read; it is left out", "error", err)
		return
	}
	var from *actor.PID
	if e.From != "" && e.Node != "" && messages.ValidateToken("node", e.Node) == nil {
		from = PID(e.Node, e.From)
	}
	m, err := t.cfg.Types.decode(e.Type, e.Body)
	if err != nil {
		t.cfg.Logger.Warn("a message of another node is a dead letter", "type", e.Type, "from", e.Node, "error", err)
		t.dead(e, from)
		return
	}
	p, ok := t.cfg.System.ProcessRegistry.GetLocal(e.To)
	if !ok {
		t.dead(e, from)
		return
	}
	if from != nil {
		m = &actor.MessageEnvelope{Message: m, Sender: from}
	}
	p.SendUserMessage(PID(t.cfg.Self, e.To), m)
}

// dead answers a message that has no process here. A dead letter that is told of one
// is not answered: two nodes would do nothing else.
func (t *Transport) dead(e *envelope, from *actor.PID) {
	if from != nil && e.Type != deadLetter {
		t.tell(from, &actor.DeadLetterResponse{Target: PID(t.cfg.Self, e.To)})
	}
}

func unknown(name string) error {
	return fmt.Errorf("type %q is unknown to this version", name)
}
