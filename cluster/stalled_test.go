package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// One subscriber stops reading its socket while it follows an agent and its deltas, and
// another dies. The server drops the first. The turns, a caller, a follower and another
// subscriber get all that there is, in order.
func TestStalledSubscribers(t *testing.T) { // A64
	w := newWorld(t)
	srv := w.serve(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir()})
	w.use(w.connect())
	text := func(turn string) string { return turn + strings.Repeat(".", 96<<10) + "end " }
	model := scripted.Func(func(r messagesRequest) scripted.Step {
		return scripted.Step{Text: text(lastUser(r)), Pieces: 8}
	})
	c := w.node(agents(model, nil)).Client()
	w.say(c, "assistant/a", "first", "first")

	following, leave := context.WithCancel(w.ctx)
	defer leave()
	followed := make(chan event, 10_000)
	go func() {
		defer close(followed)
		for line, err := range c.Query(following, "assistant/a", messages.Query{View: "events", Follow: true}) {
			var e event
			if err != nil || json.Unmarshal(line, &e) != nil {
				return
			}
			followed <- e
		}
	}()
	other := w.connect()
	live, err := other.SubscribeSync("reprise.live.default.assistant.a")
	w.ok(err)
	w.ok(live.SetPendingLimits(-1, -1))
	w.ok(other.Flush())
	stalled, dying := w.subscriber(200), w.subscriber(1)
	w.ok(dying.SetLinger(0)) // no end is sent, as when a machine dies
	turns := 0
	for dropped := 0; dropped < 3 && turns < 100; turns++ { // while it stalls, and once it is gone
		id := fmt.Sprint(turns)
		if got := w.say(c, "assistant/a", id, id); got.text != text(id) || got.end.Output != text(id) {
			t.Fatalf("turn %d: %d bytes of deltas end as %.99s", turns, len(got.text), got.end.Output)
		}
		if turns == 1 {
			w.ok(dying.Close())
		}
		if srv.NumSlowConsumers() > 0 {
			dropped++
		}
	}
	if n := srv.NumSlowConsumers(); n != 1 {
		t.Errorf("the server took %d clients for slow", n)
	}
	_, _ = stalled.Write([]byte("PING\r\n")) // it may be closed
	for lines := bufio.NewReader(stalled); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		if line == "PONG\r\n" {
			t.Fatal("the server still serves the subscriber that read nothing")
		}
	}
	// What the server did not drop is all there.
	said := ""
	for strings.Count(said, "end ") < turns {
		msg, err := live.NextMsgWithContext(w.ctx)
		w.ok(err)
		var d struct{ Type, Text string }
		w.ok(json.Unmarshal(msg.Data, &d))
		if d.Type == "text" {
			said += d.Text
		}
	}
	all := ""
	for turn := range turns {
		all += text(fmt.Sprint(turn))
	}
	if said != all {
		t.Errorf("another subscriber was sent %d bytes of text, want %d", len(said), len(all))
	}
	last, completed := messages.EventNumber(0), 0
	for completed < turns+1 {
		select {
		case e, more := <-followed:
			if !more || e.N != last+1 {
				t.Fatalf("a follower was sent event %d behind %d", e.N, last)
			}
			if last = e.N; e.Type == "turn.completed" {
				completed++
			}
		case <-w.ctx.Done():
			t.Fatalf("a follower was sent %d events", last)
		}
	}
}

// subscriber is a client of its own that follows the agent, subscribes n times to its
// deltas, and reads nothing from then on.
func (w *world) subscriber(n int) *net.TCPConn {
	w.t.Helper()
	at, err := url.Parse(w.url)
	w.ok(err)
	conn, err := net.Dial("tcp", at.Host)
	w.ok(err)
	w.t.Cleanup(func() { _ = conn.Close() })
	tcp := conn.(*net.TCPConn)
	var b strings.Builder
	b.WriteString("CONNECT {\"verbose\":false,\"headers\":true,\"protocol\":1}\r\nSUB told.> 0\r\n")
	for i := range n {
		fmt.Fprintf(&b, "SUB reprise.live.> %d\r\n", i+1)
	}
	const query = `{"view":"events","follow":true}`
	fmt.Fprintf(&b, "PUB reprise.q.default.assistant.a told.me %d\r\n%s\r\n", len(query), query)
	_, err = tcp.Write([]byte(b.String()))
	w.ok(err)
	for lines := bufio.NewReader(tcp); ; {
		line, err := lines.ReadString('\n')
		w.ok(err)
		if strings.Contains(line, `"turn.completed"`) {
			return tcp
		}
	}
}
