package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/tool"
)

// harms are the ways in which the files of a stream are damaged.
var harms = []struct {
	name string
	do   func(t *testing.T, dir, stream string)
}{
	{"flip", inTheMiddle(func(block []byte, at int) []byte { block[at+60] ^= 4; return block })},
	{"flipped sequence", inTheMiddle(func(block []byte, at int) []byte { block[at+9] ^= 4; return block })},
	{"flipped length", inTheMiddle(func(block []byte, at int) []byte { block[at] ^= 4; return block })},
	{"cut", inTheMiddle(func(block []byte, at int) []byte { return block[:at+30] })},
	{"zeroed", inTheMiddle(func(block []byte, at int) []byte { clear(block[at:min(at+4096, len(block))]); return block })},
	{"removed", inTheMiddle(func([]byte, int) []byte { return nil })},
	{"no index", onIndex(func([]byte) []byte { return nil })},
	{"bad index", onIndex(func(index []byte) []byte { index[len(index)/2] ^= 4; return index })},
}

// inTheMiddle changes the block that holds the middle one of a stream's messages, which
// begins at a byte of it; a nil block is removed.
func inTheMiddle(change func(block []byte, at int) []byte) func(t *testing.T, dir, stream string) {
	return func(t *testing.T, dir, stream string) {
		t.Helper()
		var all []blocks.Record
		s := blocks.Stream{Account: "$G", Name: stream, Dir: filepath.Join(dir, "jetstream", "$G", "streams", stream)}
		_, err := blocks.Verify(t.Context(), s, blocks.Options{Record: func(r blocks.Record) error {
			if r.Kind == blocks.Message {
				all = append(all, r)
			}
			return nil
		}})
		if err != nil || len(all) == 0 {
			t.Fatalf("stream %s holds %d messages, %v", stream, len(all), err)
		}
		middle := all[len(all)/2]
		path := filepath.Join(s.Dir, "msgs", fmt.Sprint(middle.Block, ".blk"))
		block, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rewrite(t, path, change(block, int(middle.Offset)))
	}
}

// onIndex changes the index of a stream; a nil index is removed.
func onIndex(change func(index []byte) []byte) func(t *testing.T, dir, stream string) {
	return func(t *testing.T, dir, stream string) {
		t.Helper()
		path := filepath.Join(dir, "jetstream", "$G", "streams", stream, "msgs", "index.db")
		index, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rewrite(t, path, change(index))
	}
}

func rewrite(t *testing.T, path string, data []byte) {
	t.Helper()
	err := os.Remove(path)
	if err == nil && data != nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// shop is what the damaged stores hold: customers that have paid, with payloads, snapshots
// and keys, and inputs of a clerk that wait.
type shop struct {
	*till
	customers []string
	events    map[string]int
	large     string
	// ends are copies of the folder, by how the server ended: killed in its first life, whose
	// streams have no index, killed in its second, or stopped.
	ends map[string]string
}

// waiting is how many inputs wait.
const waiting = 5

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{events: make(map[string]int), large: lines("large", 800<<10), ends: make(map[string]string)}
	s.till = newTillOn(t, func(k *till) {
		k.cfg.SnapshotEvery = 4
		under(key(1))(&k.cfg)
	})
	bank := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "bank"}
	same, other := neighbours(bank)
	s.customers = []string{bank.String(), same, other}
	for _, a := range s.customers {
		for _, said := range []string{"hello", "pay", s.large, "hello", "hello"} {
			s.say(s.n.Client(), a, fmt.Sprint("input-", len(said)), said)
		}
	}
	s.ok(s.n.Close()) // which writes the indexes; what follows is not in them
	c := s.start(s.dir)
	for _, a := range s.customers {
		s.say(c, a, "last", "hello")
		s.events[a] = len(s.till.events(c, a))
	}
	for i := range waiting {
		_, err := c.Send(s.ctx, "clerk/c", input(fmt.Sprint("w", i), strings.Repeat("w", 100)))
		s.ok(err)
	}
	s.eventually("how far the log went is on record", func() bool {
		for p := range messages.Partition(messages.Partitions) {
			if !s.n.Marked(p) {
				return false
			}
		}
		return true
	})
	s.ends["killed again"] = embeddedtest.Crash(t, s.dir)
	s.ends["killed"] = embeddedtest.Crash(t, s.dir)
	indexes, err := filepath.Glob(filepath.Join(s.ends["killed"], "jetstream", "$G", "streams", "*", "msgs", "index.db"))
	s.ok(err)
	for _, index := range indexes {
		s.ok(os.Remove(index))
	}
	s.ok(s.n.Close())
	s.ends["stopped"] = s.dir
	return s
}

// damaged is one store of the shop after it was damaged.
type damaged struct {
	t      *testing.T
	ctx    context.Context
	shop   *shop
	cfg    cluster.Config
	stream string
	// paid counts what the customers pay once more.
	paid atomic.Int32
	// named is where the damage was named.
	named []string
}

// opens damages a copy of a store and opens it: by a node with a server of its own, or with
// one that stands by itself.
func (s *shop) opens(t *testing.T, end, stream string, harm func(*testing.T, string, string), external bool) {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir := embeddedtest.Crash(t, s.ends[end])
	harm(t, dir, stream)
	d := &damaged{t: t, ctx: ctx, shop: s, cfg: s.cfg, stream: stream}
	log := new(embeddedtest.Words)
	d.cfg.Logger = log.Logger()
	d.cfg.Agents = append(slices.Clone(s.cfg.Agents), actors.Definition{Kind: "clerk", Model: "test/model"})
	d.cfg.Agents[0].Tools = []tool.Tool{paying(&d.paid)}
	d.cfg.Data = dir
	if external {
		nc, _ := embeddedtest.Plain(t, embeddedtest.PlainConfig{Dir: dir})
		d.cfg.Data, d.cfg.NATS = "", nc.ConnectedUrl()
	}
	n, err := cluster.Start(ctx, d.cfg)
	if err != nil {
		d.name("the node's start", err.Error())
		t.Logf("the node does not start: %v", err)
		d.names(log)
		if external {
			d.judge([]string{"it does not start"})
			return
		}
		err = embedded.Quarantine(ctx, dir, messages.DefaultRoot, func(q embedded.Quarantined) {
			for _, p := range q.Places {
				d.name("quarantine", q.Stream+" "+p.String())
			}
			if q.Err != nil {
				t.Error(q.Err)
			}
		}, nil)
		if err == nil {
			n, err = cluster.Start(ctx, d.cfg)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _ = n.Close() }()
	missing := d.missing(n)
	d.names(log)
	d.judge(missing)
}

// names takes in what a node has logged of the stream.
func (d *damaged) names(log *embeddedtest.Words) {
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			d.name("the node's log", line)
		}
	}
}

func (d *damaged) name(by, text string) {
	if strings.Contains(text, d.stream) {
		d.named = append(d.named, by+": "+text)
	}
}

// judge reports what is missing and was not named.
func (d *damaged) judge(missing []string) {
	d.t.Helper()
	switch {
	case len(missing) > 0 && len(d.named) == 0:
		d.t.Errorf("missing is %s, and %s was not named", strings.Join(missing, "; "), d.stream)
	case len(missing) > 0:
		d.t.Logf("missing is %s; named by %.300s", missing[0], d.named[0])
	}
	if paid := d.paid.Load(); paid > 0 {
		d.t.Errorf("paid %d times again", paid)
	}
}

// missing asks for all that was acknowledged, and says what is not there.
func (d *damaged) missing(n *cluster.Node) (missing []string) {
	c, w := n.Client(), &world{t: d.t, ctx: d.ctx, log: new(embeddedtest.Words)}
	for _, a := range d.shop.customers {
		got, err := 0, error(nil)
		for _, err = range c.Query(d.ctx, a, messages.Query{View: "events"}) {
			if err == nil {
				got++
			}
		}
		if err != nil || got < d.shop.events[a] {
			missing = append(missing, fmt.Sprintf("%d events of %s, %v", d.shop.events[a]-got, a, err))
		}
		if _, err := w.ask(c, a, input("input-3", "pay")); err != nil {
			missing = append(missing, fmt.Sprintf("what %s paid: %v", a, err))
		}
		if _, err := w.ask(c, a, input("more", "hello")); err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", a, err))
		}
		var blob bytes.Buffer
		if _, err := c.Blob(d.ctx, a, messages.DigestOf([]byte(d.shop.large)), &blob); err != nil || blob.String() != d.shop.large {
			missing = append(missing, fmt.Sprintf("a payload of %s: %v", a, err))
		}
	}
	got := 0
	if _, err := w.ask(c, "clerk/c", input("last", "hello")); err != nil {
		missing = append(missing, fmt.Sprintf("clerk/c: %v", err))
	}
	w.eventually("no input waits", func() bool {
		n, _, err := c.Backlog(d.ctx)
		return err == nil && n == 0
	})
	for line, err := range c.Query(d.ctx, "clerk/c", messages.Query{View: "events"}) {
		if err == nil && bytes.Contains(line, []byte(`"input.accepted"`)) {
			got++
		}
	}
	if got != waiting+1 {
		missing = append(missing, fmt.Sprintf("%d inputs that waited", waiting+1-got))
	}
	for line, err := range c.QueryStore(d.ctx, messages.Query{View: "doctor", Deep: true}) {
		var e gateway.Examined
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			d.t.Error(err)
		} else if f := e.Finding; f != nil && f.Status == "fail" && (f.Stream == d.stream || slices.Contains(d.shop.customers, f.Agent.String())) { // a payload or key is named with its agent
			d.named = append(d.named, "doctor: "+f.Detail)
		}
	}
	return missing
}

// provable reports whether it can be known that a stream was harmed so. A server killed in its
// first life leaves no index that could be harmed. Nothing is on record of inputs that wait, so
// that a missing file of theirs, or any loss behind a server that stands by itself, is not seen.
// That server does not live through some harm (nats-server v2.15.2 fills its memory, or answers
// nothing any more), and a node waits until the stream of its leases, which is made again, is
// removed.
func provable(external bool, end, stream, harm string) bool {
	names := natslog.NamesOf(messages.Subjects{})
	switch {
	case end == "killed" && strings.HasSuffix(harm, " index"):
		return false
	case !external:
		return stream != names.Inbox() || harm != "removed"
	case stream == names.Inbox(), stream == "KV_reprise_leases":
		return false
	case stream == names.Snapshots() && end == "stopped" && harm == "zeroed":
		return false
	}
	return !strings.HasPrefix(harm, "flipped ")
}

// TestDamageIsNamed damages each stream in each way, after each kind of end: either all that
// was acknowledged is there, or the loss is named with its stream or agent, and nothing is
// paid twice.
func TestDamageIsNamed(t *testing.T) { // A29
	s := newShop(t)
	names := natslog.NamesOf(messages.Subjects{})
	bank := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "bank"}
	streams := []string{
		names.Log(bank.Partition()), names.Blobs(bank.Partition()), names.Snapshots(), names.Inbox(), names.Definitions(),
		"KV_reprise_leases", natslog.KeysOf(messages.Subjects{}), natslog.MarksOf(messages.Subjects{}),
	}
	for server, external := range map[string]bool{"embedded": false, "external": true} {
		for _, end := range []string{"killed", "killed again", "stopped"} {
			for _, stream := range streams {
				for _, harm := range harms {
					if !provable(external, end, stream, harm.name) {
						continue
					}
					t.Run(strings.Join([]string{server, end, stream, harm.name}, " "), func(t *testing.T) {
						if ordinary := end == "killed" || end == "killed again" && strings.HasSuffix(harm.name, " index"); external || stream != streams[0] || !ordinary {
							embeddedtest.Long(t, "one of each kind is enough")
						}
						s.opens(t, end, stream, harm.do, external)
					})
				}
			}
		}
	}
}
