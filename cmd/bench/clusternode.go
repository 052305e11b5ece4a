package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// order is what a node's process reads first.
type order struct {
	NATS     string `json:"nats"`
	Replicas int    `json:"replicas"`
	IndexDir string `json:"index_dir"`
}

// serving is what it prints when it serves.
type serving struct {
	ID string `json:"id"`
}

// plainKind answers at once; heldKind's model never answers.
const plainKind = "plain"

// nodeModel thinks for the nodes of a cluster.
var nodeModel = providers.Func(func(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
	switch r.Agent.Kind {
	case heldKind:
		<-ctx.Done()
		return providers.Response{}, context.Cause(ctx)
	case plainKind:
		return justSay.Generate(ctx, r, emit)
	}
	return twoStep.Generate(ctx, r, emit)
})

var justSay = scripted.Func(func(providers.Request) scripted.Step { return scripted.Say(userInput) })

// serveNode runs a node until its input ends or it is told to stop, which it does in
// order.
func serveNode(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	var o order
	orders := json.NewDecoder(in)
	if err := orders.Decode(&o); err != nil {
		return fmt.Errorf("read what node to start: %w", err)
	}
	node, err := cluster.Start(ctx, cluster.Config{
		NATS: o.NATS, Replicas: o.Replicas, IndexDir: o.IndexDir, Version: "bench", IdleAfter: time.Hour,
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Providers: providers.Set{"bench": nodeModel},
		Agents: []actors.Definition{
			{Kind: kind, Model: modelName, Instructions: instructions, Tools: []tool.Tool{echo}},
			{Kind: plainKind, Model: modelName, Instructions: instructions},
			{Kind: heldKind, Model: modelName, Instructions: instructions},
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	nc, err := natslog.Connect(o.NATS)
	if err != nil {
		return err
	}
	defer nc.Close()
	if _, err := nc.Subscribe(echoSubject(node.ID()), func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil { // who asks for a lost answer waits no longer than its window
		return err
	}
	if err := errors.Join(nc.Flush(), json.NewEncoder(out).Encode(serving{node.ID()})); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, in) // its end is the word to stop
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-node.Ended():
		return node.Err()
	}
	return nil
}

// echoSubject is where a node's process answers with what it was sent.
func echoSubject(id string) string { return "bench.echo." + id }

// member is a node in a process of its own.
type member struct {
	*process
	id   string
	gone chan struct{} // closed when the process has ended
}

// serves bounds how long a node may take to start.
const serves = 60 * time.Second

// launch starts a node's process; it ends with ctx at the latest.
func (t *trial) launch(ctx context.Context, number int) (*member, error) {
	indexes, err := os.MkdirTemp(t.servers.dir, "index-")
	if err != nil {
		return nil, err
	}
	p, err := spawn(ctx, fmt.Sprint("node ", number), t.Program, "bench", clusterNode)
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(serves, p.kill) // its output ends then
	defer late.Stop()
	var is serving
	if err := p.ask(order{NATS: t.urls[number%len(t.urls)], Replicas: t.store.replicas, IndexDir: filepath.Join(indexes, strconv.Itoa(number))}, &is); err != nil {
		return nil, err
	}
	m := &member{process: p, id: is.ID, gone: make(chan struct{})}
	go func() {
		defer close(m.gone)
		_ = m.cmd.Wait() // running reports one that was not ended on purpose
	}()
	return m, nil
}

// start starts the nodes and waits until they own what they are to own.
func (t *trial) start(ctx context.Context) error {
	members := make([]*member, t.nodes)
	errs := make([]error, t.nodes)
	var wg sync.WaitGroup
	for i := range members {
		wg.Go(func() { members[i], errs[i] = t.launch(ctx, i) })
	}
	wg.Wait()
	for _, m := range members {
		if m != nil {
			t.members = append(t.members, m)
		}
	}
	if err := errors.Join(errs...); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	return t.placed(ctx)
}

// running says which node has ended by itself.
func (t *trial) running() error {
	for _, m := range t.members {
		select {
		case <-m.gone:
			return fmt.Errorf("node %s has ended by itself (%v); it said: %s", m.id, m.cmd.ProcessState, &m.log)
		default:
		}
	}
	return nil
}

// without takes a member out of those that run.
func (t *trial) without(m *member) {
	var rest []*member
	for _, other := range t.members {
		if other != m {
			rest = append(rest, other)
		}
	}
	t.members = rest
}

// kill ends the process at once and waits until it is gone.
func (m *member) kill() error {
	err := m.cmd.Process.Kill()
	<-m.gone
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// end kills what runs. What they had stored is not looked at any more.
func (t *trial) end() (err error) {
	err = t.running()
	for _, m := range t.members {
		err = errors.Join(err, m.kill())
		_ = m.in.Close() // it was closed with the process
	}
	t.members = nil
	return err
}
