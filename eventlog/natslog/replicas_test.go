package natslog_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// asServer is the environment variable that makes this test's binary a server.
const asServer = "NATSLOG_TEST_SERVER"

// serveAs runs the server that the variable describes until its input ends.
func serveAs(config string) {
	var c served
	err := json.Unmarshal([]byte(config), &c)
	if err == nil {
		c.Logger = quiet
		var s *embedded.Server
		if s, err = embedded.Start(c.Config); err == nil {
			fmt.Println(s.ClientURL())
		}
	}
	if err != nil {
		fmt.Println(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// served is the configuration of a server in a process of its own, without a login: JSON does
// not show it.
type served struct {
	embedded.Config
	Login any `json:",omitempty"`
}

// process is a NATS server in a process of its own.
type process struct {
	config embedded.Config
	url    string
	cmd    *exec.Cmd
	in     io.WriteCloser // at its end the process ends, too
}

func (p *process) start(t *testing.T) {
	t.Helper()
	config, err := json.Marshal(served{Config: p.config})
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), asServer+"="+string(config))
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if p.url = strings.TrimSpace(line); err != nil || !strings.HasPrefix(p.url, "nats://") {
		p.kill()
		t.Fatalf("the server says %q, %v", line, err)
	}
	u, _ := url.Parse(p.url)
	p.config.Port, _ = strconv.Atoi(u.Port()) // for when it is started again
}

// kill ends it as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// ports are n addresses of the loopback, and what holds each of them until it is closed:
// directly before a server listens there, as another program may take a free one.
func ports(t *testing.T, n int) (all []string, held []net.Listener) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		all, held = append(all, l.Addr().String()), append(held, l)
	}
	return all, held
}

// processes runs a cluster of three servers, each in a process of its own, and
// returns their addresses.
func processes(t *testing.T) (all []*process, urls string) {
	t.Helper()
	dir := t.TempDir()
	routes, held := ports(t, 3)
	var clients []string
	for i, at := range routes {
		p := &process{config: embedded.Config{
			Dir: filepath.Join(dir, strconv.Itoa(i)), ServerName: fmt.Sprintf("s%d", i), Sync: embedded.SyncRelaxed,
			Peers: &embedded.Peers{Name: "c", Listen: at, All: routes},
		}}
		_ = held[i].Close()
		p.start(t)
		t.Cleanup(p.kill)
		all, clients = append(all, p), append(clients, p.url)
	}
	return all, strings.Join(clients, ",")
}

// ledger is what was acknowledged to writers and seen by readers, to be compared with what is
// stored.
type ledger struct {
	log  *natslog.Log
	mu   sync.Mutex
	more *sync.Cond
	ids  map[messages.AgentID][]messages.FrameID
	seen map[messages.AgentID]messages.EventNumber // by readers of shards
}

func newLedger(log *natslog.Log) *ledger {
	l := &ledger{log: log, ids: make(map[messages.AgentID][]messages.FrameID), seen: make(map[messages.AgentID]messages.EventNumber)}
	l.more = sync.NewCond(&l.mu)
	return l
}

// agents enters n agents.
func (l *ledger) agents(n int) (all []messages.AgentID) {
	for i := range n {
		a := logtest.Agent(strconv.Itoa(i))
		all, l.ids[a] = append(all, a), nil
	}
	return all
}

// write commits frames to one agent, one behind the other, until ctx ends.
func (l *ledger) write(ctx context.Context, t *testing.T, a messages.AgentID) {
	var tail eventlog.Position
	for ctx.Err() == nil {
		e := logtest.Entry(t, a, tail)
		var err error
		if tail, err = eventlog.Commit(context.WithoutCancel(ctx), l.log, e); err != nil {
			t.Errorf("%s: %v", a, err)
			return
		}
		l.mu.Lock()
		l.ids[a] = append(l.ids[a], e.Frame.ID)
		l.more.Broadcast()
		l.mu.Unlock()
	}
}

// read notes what a shard yields until ctx ends.
func (l *ledger) read(ctx context.Context, t *testing.T, shard int) {
	for m, err := range l.log.ReadShard(ctx, shard, 0) {
		l.mu.Lock()
		switch {
		case err != nil && ctx.Err() == nil:
			t.Error(err)
		case err == nil && m.First != 0 && m.First != l.seen[m.Agent]+1:
			t.Errorf("shard %d: event %d of %s after %d", shard, m.First, m.Agent, l.seen[m.Agent])
		case err == nil && m.First != 0:
			l.seen[m.Agent] = m.Last
		}
		l.more.Broadcast()
		l.mu.Unlock()
	}
}

// grow waits until every agent has n more frames.
func (l *ledger) grow(t *testing.T, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begun := make(map[messages.AgentID]int)
	for a, ids := range l.ids {
		begun[a] = len(ids)
	}
	for !t.Failed() && slices.ContainsFunc(slices.Collect(maps.Keys(begun)), func(a messages.AgentID) bool { return len(l.ids[a]) < begun[a]+n }) {
		l.more.Wait()
	}
}

// check reads every agent: what was acknowledged is there, once and in order, and
// readers of shards, if there are, have seen it.
func (l *ledger) check(t *testing.T, readers bool) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for a, want := range l.ids {
		n := 0
		for r, err := range l.log.Read(context.Background(), a, eventlog.Range{}) {
			if err != nil || n >= len(want) || r.Frame.ID != want[n] {
				t.Fatalf("%s, frame %d of %d: %v, %v", a, n, len(want), r.Frame, err)
			}
			n++
		}
		if n != len(want) {
			t.Errorf("%s: %d frames, %d were acknowledged", a, n, len(want))
		}
		for readers && int(l.seen[a]) < len(want) && !t.Failed() {
			l.more.Wait()
		}
	}
}

// stepDown makes a stream elect another leader. It is asked again while no answer comes:
// a second step-down does no harm.
func stepDown(t *testing.T, nc *nats.Conn, stream string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for err := errors.New("not tried"); err != nil; {
		if ctx.Err() != nil {
			t.Fatalf("stream %s keeps its leader: %v", stream, err)
		}
		once, end := context.WithTimeout(ctx, 10*time.Second)
		_, err = nc.RequestWithContext(once, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil)
		end()
	}
}

// With three replicas every append outlives streams whose leaders step down, a
// server that is killed, and one that comes back; and readers see each frame once.
func TestThreeReplicasUnderLoad(t *testing.T) {
	underLoad(t)
	all, urls := processes(t)
	var conns []*nats.Conn
	for range 4 {
		nc, err := natslog.Connect(urls, nats.Timeout(time.Minute), nats.ErrorHandler(nil))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		conns = append(conns, nc)
	}
	log, err := natslog.Open(t.Context(), natslog.Config{Conns: conns, Replicas: 3, Logger: quiet}) // while they still elect a leader
	if err != nil {
		t.Fatal(err)
	}
	l := newLedger(log)
	writing, enough := context.WithCancel(t.Context())
	reading, end := context.WithCancel(t.Context())
	var writers, readers sync.WaitGroup
	for _, a := range l.agents(64) {
		writers.Go(func() { l.write(writing, t, a) })
	}
	for shard := range log.Shards() {
		readers.Go(func() { l.read(reading, t, shard) })
	}
	l.grow(t, 50)
	for shard := range log.Shards() {
		stepDown(t, conns[0], log.ShardName(shard))
	}
	l.grow(t, 50)
	all[0].kill()
	l.grow(t, 50)
	all[0].start(t)
	l.grow(t, 50)
	enough()
	writers.Wait()
	l.check(t, true)
	end()
	readers.Wait()
}
