package gateway

import (
	"math"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/transport"
	"github.com/reprise-dev/reprise/messages"
)

// Nodes is how a node's doors reach those of other nodes.
type Nodes struct {
	Transport *transport.Transport
	// Self is this node's id, OwnerOf that of a partition's owner, empty if
	// nobody owns it. It is called from many goroutines.
	Self    string
	OwnerOf func(messages.Partition) string
}

// What the hubs of two nodes tell one another. A hub follows an agent at the hub of
// the agent's owner once, however many follow it here.
type (
	// follow asks for what the agent does from now on. Asked again it changes
	// nothing. It is answered by reached.
	follow struct {
		Agent string `json:"a"`
	}
	// reached says up to which event the agent had come when it was first followed, or
	// when its owner's connection was made anew.
	reached struct {
		Agent string               `json:"a"`
		N     messages.EventNumber `json:"n"`
	}
	// unfollow ends it.
	unfollow struct {
		Agent string `json:"a"`
	}
	// told is a commit, spoken a delta.
	told   struct{ actors.Commit }
	spoken struct{ actors.Delta }
)

// toldBody and spokenBody are told and spoken on the wire.
type (
	toldBody struct {
		Agent   string              `json:"a"`
		Seq     uint64              `json:"s"`
		Phase   messages.AgentPhase `json:"p,omitempty"`
		Turn    messages.TurnID     `json:"t,omitempty"`
		Waiting int                 `json:"w,omitempty"`
		Frame   []byte              `json:"f"`
	}
	spokenBody struct {
		Agent string          `json:"a"`
		Turn  messages.TurnID `json:"t"`
		Call  messages.CallID `json:"c"`
		Kind  string          `json:"k"`
		Text  string          `json:"x"`
		Child string          `json:"d,omitempty"`
	}
)

// Travel lets pass between nodes what their doors tell one another.
func Travel(t *transport.Types) {
	transport.Register[follow](t, "follow")
	transport.Register[reached](t, "reached")
	transport.Register[unfollow](t, "unfollow")
	transport.Register[passed](t, "pass")
	transport.Register[taken](t, "taken")
	transport.Register[goOn](t, "go on")
	transport.RegisterAs(t, "told", encodeTold, decodeTold)
	transport.RegisterAs(t, "spoken", encodeSpoken, decodeSpoken)
}

func encodeTold(m *told) ([]byte, error) {
	frame, err := messages.EncodeFrame(m.Agent, m.Frame)
	if err != nil {
		return nil, err
	}
	return messages.Pack(&toldBody{m.Agent.Full(), m.Seq, m.Phase, m.Turn, m.Waiting, frame})
}

func decodeTold(b []byte) (*told, error) {
	var body toldBody
	if err := messages.UnpackKnown(b, &body); err != nil {
		return nil, err
	}
	a, err := messages.ParseAgentID(body.Agent)
	if err != nil {
		return nil, err
	}
	f, err := messages.DecodeFrame(a, body.Frame)
	return &told{actors.Commit{Agent: a, Seq: body.Seq, Frame: f, Phase: body.Phase, Turn: body.Turn, Waiting: body.Waiting}}, err
}

func encodeSpoken(m *spoken) ([]byte, error) {
	d := m.Delta
	return messages.Pack(&spokenBody{d.Agent.Full(), d.Turn, d.Call, d.Kind, d.Text, d.Child})
}

func decodeSpoken(b []byte) (*spoken, error) {
	var body spokenBody
	if err := messages.UnpackKnown(b, &body); err != nil {
		return nil, err
	}
	a, err := messages.ParseAgentID(body.Agent)
	return &spoken{actors.Delta{Agent: a, Turn: body.Turn, Call: body.Call, Kind: body.Kind, Text: body.Text, Child: body.Child}}, err
}

const (
	hubName = "hub"
	// aimEvery is how often it is looked whether what is followed is followed at its
	// owner; unheardAfter how long a hub may take to say that it is, and confirmAfter
	// how long that is believed. Who has not asked for forgetAfter is told no more: its
	// node is gone, or follows the agent elsewhere.
	aimEvery     = 250 * time.Millisecond
	unheardAfter = time.Second
	confirmAfter = 10 * time.Second
	forgetAfter  = 3 * confirmAfter
)

// everything is behind every event: there may be more than was told.
const everything = messages.EventNumber(math.MaxUint64)

// aimed is where this hub follows an agent of another node.
type aimed struct {
	node      string // empty: nobody owns it now
	confirmed bool
	asked     time.Time
}

// hearer is a hub that follows an agent here.
type hearer struct {
	pid  *actor.PID // of that hub
	self *actor.PID // as which we speak to it
	stop func()
	// asked is when it was last asked for: who follows asks again and again.
	asked time.Time
}

// open lets other hubs reach this one.
func (h *Hub) open() (stop func()) {
	if h.nodes.Transport == nil {
		return func() {}
	}
	var end func()
	h.self, end = h.nodes.Transport.Serve(hubName, h.heard)
	return end
}

// heard takes what another node's hub says.
func (h *Hub) heard(from *actor.PID, m any) {
	switch m := m.(type) {
	case *follow:
		h.followed(from, m.Agent)
	case *unfollow:
		h.unheard(from, m.Agent, nil)
	case *reached:
		h.confirmed(from, m)
	case *told:
		h.each(m.Agent, func(f *feed) { f.push(item{commit: &m.Commit}) })
	case *spoken:
		if h.owner(m.Agent) == h.nodes.Self { // of a child that lives where from is
			h.delta(m.Delta)
		} else {
			h.each(m.Agent, func(f *feed) { f.push(item{delta: &m.Delta}) })
		}
	}
}

func (h *Hub) owner(a messages.AgentID) string {
	if h.nodes.Transport == nil {
		return h.nodes.Self
	}
	return h.nodes.OwnerOf(a.Partition())
}

// followed begins to tell another hub what an agent does.
func (h *Hub) followed(from *actor.PID, agent string) {
	a, err := messages.ParseAgentID(agent)
	if err != nil || from == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	is := h.hearers[a][transport.NodeOf(from)]
	if is == nil {
		is = &hearer{pid: from}
		gone := func(_ *actor.PID, m any) { // that node is gone, or follows no more
			if _, dead := m.(*actor.DeadLetterResponse); dead { // else it is our connection that is broken
				go h.unheard(from, agent, is) // who sends may hold what this needs
			}
		}
		is.self, is.stop = h.nodes.Transport.Serve(h.nodes.Transport.Name(hubName), gone)
		if h.hearers[a] == nil {
			h.hearers[a] = make(map[string]*hearer)
		}
		h.hearers[a][transport.NodeOf(from)] = is
	}
	is.asked = time.Now()
	row, _ := h.agents.Agent(a)
	h.nodes.Transport.Send(from, h.self, &reached{agent, row.Events})
}

// unheard ends what followed began; only that hearer if it is not nil, and not what was begun
// meanwhile.
func (h *Hub) unheard(from *actor.PID, agent string, only *hearer) {
	a, err := messages.ParseAgentID(agent)
	if err != nil || from == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if is := h.hearers[a][transport.NodeOf(from)]; is != nil && (only == nil || only == is) {
		h.forget(a, transport.NodeOf(from), is)
	}
}

// forget ends what a hub is told of an agent; h.mu is held.
func (h *Hub) forget(a messages.AgentID, node string, is *hearer) {
	is.stop()
	delete(h.hearers[a], node)
	if len(h.hearers[a]) == 0 {
		delete(h.hearers, a)
	}
}

// forgetSilent forgets who has not asked for long.
func (h *Hub) forgetSilent(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a, nodes := range h.hearers {
		for node, is := range nodes {
			if now.Sub(is.asked) > forgetAfter {
				h.forget(a, node, is)
			}
		}
	}
}

// spread tells other hubs; h.mu is held.
func (h *Hub) spread(hearers map[string]*hearer, m any) {
	for _, to := range hearers {
		h.nodes.Transport.Send(to.pid, to.self, m)
	}
}

// aim follows an agent at its owner's hub; h.mu is held. It says whether that is
// another node than before.
func (h *Hub) aim(a messages.AgentID, owner string) (moved bool) {
	if h.nodes.Transport == nil {
		return false
	}
	was := h.aimed[a]
	if was != nil && was.node != "" && was.node != owner {
		h.nodes.Transport.Send(transport.PID(was.node, hubName), h.self, &unfollow{a.Full()})
	}
	if owner == h.nodes.Self {
		delete(h.aimed, a)
		return was != nil
	}
	h.aimed[a] = &aimed{node: owner, asked: time.Now(), confirmed: was != nil && was.node == owner && was.confirmed}
	if owner != "" {
		h.nodes.Transport.Send(transport.PID(owner, hubName), h.self, &follow{a.Full()})
	}
	return was == nil || was.node != owner
}

// confirmed notes that a hub tells us of an agent from now on, and has those who
// follow it look for what came before.
func (h *Hub) confirmed(from *actor.PID, m *reached) {
	a, err := messages.ParseAgentID(m.Agent)
	if err != nil || from == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := h.aimed[a]; at != nil && at.node == transport.NodeOf(from) {
		at.confirmed = true
		for f := range h.feeds[a] {
			f.push(item{reached: m.N})
		}
	}
}

// Moved looks anew where the agents of a partition are followed: it has, or may have,
// another owner now. It does not block.
func (h *Hub) Moved(p messages.Partition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a, feeds := range h.feeds {
		if a.Partition() == p {
			h.lookAgain(a, feeds)
		}
	}
}

func (h *Hub) lookAgain(a messages.AgentID, feeds map[*feed]struct{}) {
	h.aim(a, h.owner(a))
	for f := range feeds {
		f.push(item{reached: everything})
	}
}

// lookAgainElsewhere has the hubs that follow agents here look for what they were told
// while our connection was broken, which is lost: theirs was whole, and knows of nothing.
func (h *Hub) lookAgainElsewhere() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for a, hearers := range h.hearers {
		row, _ := h.agents.Agent(a)
		h.spread(hearers, &reached{a.Full(), row.Events})
	}
}

// keepAim looks again and again whether agents of other nodes are followed at their
// owners, and who still follows agents here, until done.
func (h *Hub) keepAim(done <-chan struct{}) {
	connected := h.conn.StatusChanged(nats.CONNECTED)
	defer h.conn.RemoveStatusListener(connected)
	ticker, forgetting := time.NewTicker(aimEvery), time.NewTicker(confirmAfter)
	defer ticker.Stop()
	defer forgetting.Stop()
	for {
		select {
		case <-ticker.C:
			h.aimAgain(time.Now())
		case <-forgetting.C:
			h.forgetSilent(time.Now())
		case _, open := <-connected:
			if !open { // for good
				connected = nil
				continue
			}
			h.lookAgainElsewhere()
		case <-done:
			return
		}
	}
}

func (h *Hub) aimAgain(now time.Time) {
	if h.nodes.Transport == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for a, feeds := range h.feeds {
		at, owner := h.aimed[a], h.owner(a)
		switch {
		case at == nil && owner == h.nodes.Self:
		case at == nil || at.node != owner:
			h.lookAgain(a, feeds)
		case !at.confirmed && now.Sub(at.asked) > unheardAfter, now.Sub(at.asked) > confirmAfter:
			h.aim(a, owner)
		}
	}
}
