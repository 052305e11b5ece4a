package cli_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/messages"
)

// TestDoctorFindsDamage has what the world can do to a log done to four agents:
// each is reported with its place and left as it is, and a fifth continues.
func TestDoctorFindsDamage(t *testing.T) { // A29
	w := newWorld(t)
	w.file("reprise.yaml", small)
	node := w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed")
	for _, key := range []string{"flipped", "gap", "newer", "foreign", "sound"} {
		w.run("ask", "assistant/"+key, "What is 17 times 3?").exits(0, "51")
		w.run("ask", "assistant/"+key, "What is 4 times 3?").exits(0, "12")
	}
	w.run("doctor").exits(0, "note  encryption", "off", "note  scrub", "16 of 16 streams", "ok    log", "5 agents with 40 frames")
	w.publishRaw("foreign", nil, []byte("who am I"))
	w.publishFrame("gap", func(f *messages.Frame) { f.First += 2 }, func(_ string, b []byte) []byte { return b })
	w.publishFrame("newer", func(*messages.Frame) {}, newer)
	if code := node.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d\n%s", code, node.errs)
	}
	w.flip("flipped", "4 times 3?")
	node = w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed")

	r := w.run("doctor").exits(1, "fail  log", "fail  log           5 agents", "3 problems", "1 thing that needs care")
	found := make(map[string]map[string]any)
	for _, o := range w.run("doctor", "-o", "json").exits(1).objects() {
		if o["type"] == "finding" {
			found[strings.TrimPrefix(fmt.Sprint(o["agent"]), "assistant/")] = o
		}
	}
	for key, want := range map[string]struct {
		event, seq  float64
		status, say string
	}{
		"flipped": {event: 13, status: "fail", say: "events are missing"},
		"gap":     {event: 23, status: "fail", say: "begins with event 25, not 23"},
		"newer":   {event: 23, status: "fail", say: "format"},
		"foreign": {status: "warn", say: "no frame"},
	} {
		f := found[key]
		event, _ := f["event"].(float64)
		if f == nil || event != want.event || f["status"] != want.status || f["seq"] == nil || !strings.HasPrefix(fmt.Sprint(f["stream"]), "REPRISE_LOG_") || !strings.Contains(fmt.Sprint(f["detail"]), want.say) || f["remedy"] == nil {
			t.Errorf("%s: %v\n%s", key, f, r.out)
		}
	}
	if len(found) != 4 {
		t.Errorf("found %v", found)
	}
	for _, key := range []string{"flipped", "gap", "newer"} {
		before := w.stored(key)
		verb := []string{"ask", "assistant/" + key, "What is 5 times 3?"}
		if key == "flipped" { // below its snapshot, from which the agent continues
			verb = []string{"replay", "assistant/" + key}
		}
		w.run(verb...).exits(1, "damaged at event", "sequence")
		w.run("doctor", "assistant/"+key).exits(1, "fail  log", "assistant/"+key)
		if after := w.stored(key); after != before {
			t.Errorf("%s was touched: %d messages, then %d", key, before, after)
		}
	}
	for _, key := range []string{"foreign", "sound"} {
		w.run("ask", "assistant/"+key, "What is 5 times 3?").exits(0, "15")
		w.run("doctor", "assistant/"+key).exits(0, "ok    log")
	}
	w.run("doctor", "assistant/none").exits(1, "does not exist")
	w.run("doctor", "assistant/sound", "--repair").exits(2, "--repair")
	w.run("doctor", "--rate", "-1").exits(2, "--rate")
	w.run("doctor", "--quick").exits(0, "dead letters")
	w.run("doctor", "--quick", "--deep").exits(2, "--quick")
	w.run("doctor", "--deep", "--repair", "--rate", "5000").exits(1)

	// What was wrong is in the backup as it was, and is reported again.
	w.run("backup", "store.tar").exits(0)
	w.run("restore", "store.tar", "--data", "again").exits(1, "fail  log", "restored to again", "serve --data again`", "dev --data again`", "not sound")
	w.run("restore", "store.tar", "--data", "more", "--no-check").exits(0, "restored to more")
	node.end(syscall.SIGTERM)
	node = w.node("serve", "--data", "again", "--listen", "127.0.0.1:0", "--sync", "relaxed")
	w.run("ask", "assistant/sound", "What is 6 times 3?", "--data", "again").exits(0, "18")
	node.end(syscall.SIGTERM)

	// An agent that must not be stored can be deleted, whatever state it is in.
	node = w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed")
	w.run("delete", "assistant/newer", "--yes").exits(1, "newer version")
	w.run("ask", "assistant/hole", "What is 17 times 3?").exits(0)
	w.run("ask", "assistant/hole", "What is 4 times 3?").exits(0)
	node.end(syscall.SIGTERM) // and a snapshot of it is left
	node = w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed")
	w.lose("hole")
	for _, key := range []string{"flipped", "hole", "gap"} {
		w.run("delete", "assistant/"+key, "--dry-run").exits(0, "its log is damaged")
		w.run("delete", "assistant/"+key, "--children", "--dry-run").exits(0, "not named here stay")
		w.run("delete", "assistant/"+key, "--yes", "--reason", "she asked for it").exits(0, "deleted")
		if left := w.stored(key); left != 1 && key != "flipped" { // a server purges only what it can read
			t.Errorf("%s: %d messages are left, want the tombstone", key, left)
		}
		w.run("show", "assistant/"+key).exits(0, "deleted", "she asked for it")
		w.run("ask", "assistant/"+key, "What is 7 times 3?").exits(0, "21")
		if out := w.run("history", "assistant/"+key).exits(0, "7 times 3").out; strings.Contains(out, "4 times 3") {
			t.Errorf("%s remembers:\n%s", key, out)
		}
		w.run("doctor", "assistant/"+key, "--deep").exits(0, "ok    log")
	}
	w.run("doctor").exits(1, "1 problem") // newer

	// A crash came between a damaged agent's tombstone and the rest.
	w.publishFrame("sound", func(f *messages.Frame) { f.First += 2 }, func(_ string, b []byte) []byte { return b })
	w.publishFrame("sound", func(f *messages.Frame) {
		f.Events = []messages.Event{messages.AgentDeleted{Upto: messages.Extent{Blobs: 1000, Snapshots: 1000}}}
	}, func(_ string, b []byte) []byte { return b })
	node.end(syscall.SIGTERM)
	// The flipped frame is there still: a server purges only what it can read.
	w.run("doctor", "--data", ".reprise", "--quarantine").exits(0, "assistant/flipped", "1 place in 1 stream of")
	node = w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed")
	lost := logOf("hole") // by an administrator
	w.run("ask", "assistant/hole", "What is 8 times 3?").exits(1, "damaged", lost, "1 of those up to sequence")
	w.run("doctor").exits(1, lost+": messages that were acknowledged are lost", "--accept-loss "+lost)
	w.run("doctor", "--accept-loss", lost).exits(2, "--reason")
	w.run("doctor", "--deep", "--accept-loss", lost, "--reason", "x").exits(2, "leave all but --reason out")
	w.run("doctor", "--accept-loss", "REPRISE_IN", "--reason", "x").exits(1, "REPRISE_LOG_0 to REPRISE_LOG_15")
	w.accept("a test removed it")
	w.run("send", "assistant/sound", "What is 8 times 3?").exits(0)
	w.run("ask", "assistant/sound", "What is 9 times 3?").exits(0, "27")
	w.run("doctor", "assistant/sound", "--deep").exits(0, "ok    log")
	node.end(syscall.SIGTERM)
}

func agentID(key string) messages.AgentID {
	return messages.AgentID{Tenant: messages.DefaultTenant, Kind: "assistant", Key: key}
}

// logOf is the stream that holds an agent's log.
func logOf(key string) string {
	return fmt.Sprintf("REPRISE_LOG_%d", agentID(key).Partition()/4)
}

func (w *world) stream(key string) jetstream.Stream {
	w.t.Helper()
	js, err := jetstream.New(connect(w.t, w))
	if err != nil {
		w.t.Fatal(err)
	}
	stream, err := js.Stream(w.t.Context(), logOf(key))
	if err != nil {
		w.t.Fatal(err)
	}
	return stream
}

// stored is how many messages the agent's log has.
func (w *world) stored(key string) uint64 {
	w.t.Helper()
	subject := messages.Subjects{}.Log(agentID(key))
	info, err := w.stream(key).Info(w.t.Context(), jetstream.WithSubjectFilter(subject))
	if err != nil {
		w.t.Fatal(err)
	}
	return info.State.Subjects[subject]
}

// lose removes the second message of an agent's log.
func (w *world) lose(key string) {
	w.t.Helper()
	stream, subject := w.stream(key), messages.Subjects{}.Log(agentID(key))
	var m *jetstream.RawStreamMsg
	var err error
	for range 2 {
		from := uint64(1)
		if m != nil {
			from = m.Sequence + 1
		}
		if m, err = stream.GetMsg(w.t.Context(), from, jetstream.WithGetMsgSubject(subject)); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := stream.DeleteMsg(w.t.Context(), m.Sequence); err != nil {
		w.t.Fatal(err)
	}
}

// accept accepts the loss of every stream that doctor names.
func (w *world) accept(reason string) {
	w.t.Helper()
	for _, o := range w.run("doctor", "-o", "json").objects() {
		if stream := fmt.Sprint(o["stream"]); o["type"] == "finding" && o["check"] == "store" && o["stream"] != nil {
			w.run("doctor", "--accept-loss", stream, "--reason", reason).exits(0, "the loss of stream "+stream+" is accepted by")
			w.run("doctor", "--accept-loss", stream, "--reason", "again").exits(0, "is accepted by") // as a lost answer has it asked
		}
	}
}

// publishRaw stores a message on an agent's log subject, as only its owner
// should.
func (w *world) publishRaw(key string, h nats.Header, body []byte) {
	w.t.Helper()
	js, err := jetstream.New(connect(w.t, w))
	if err == nil {
		_, err = js.PublishMsg(w.t.Context(), &nats.Msg{Subject: messages.Subjects{}.Log(agentID(key)), Header: h, Data: body})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// publishFrame stores a frame that follows the agent's newest one but for what
// change and spoil have done to it.
func (w *world) publishFrame(key string, change func(*messages.Frame), spoil func(agent string, b []byte) []byte) {
	w.t.Helper()
	a := agentID(key)
	newest, err := w.stream(key).GetLastMsgForSubject(w.t.Context(), messages.Subjects{}.Log(a))
	if err != nil {
		w.t.Fatal(err)
	}
	last, err := messages.DecodeFrame(a, newest.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	f := &messages.Frame{
		ID: messages.FrameID(ulid.Make().String()), Epoch: last.Epoch, First: last.Last() + 1, Prev: last.ID,
		PrevDigest: messages.DigestOf(newest.Data), Time: last.Time, Events: []messages.Event{messages.CommandNoop{Command: "abort"}},
	}
	change(f)
	b, err := messages.EncodeFrame(a, f)
	if err != nil {
		w.t.Fatal(err)
	}
	w.publishRaw(key, nats.Header{
		"Reprise-Frame":  {fmt.Sprintf("1 %s %d %d %d %d", f.ID, f.Epoch, f.First, f.Last(), f.Time.UnixNano())},
		"Reprise-Events": {f.Events[0].EventType()}, "Reprise-State": {"idle - - - 0"},
	}, spoil(a.Full(), b))
}

// newer makes a frame of a format that is not known yet, with a good checksum.
func newer(agent string, b []byte) []byte {
	b = bytes.Replace(b, []byte{0xa1, 'f', messages.FrameFormat}, []byte{0xa1, 'f', 99}, 1)
	table, cut := crc32.MakeTable(crc32.Castagnoli), len(b)-9
	sum := crc32.Update(crc32.Checksum([]byte(agent), table), table, b[:cut])
	return append(b[:len(b)-4], byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
}

// flip changes a bit of text in the files of the agent's log, while no node runs.
func (w *world) flip(key, text string) {
	w.t.Helper()
	blocks, err := filepath.Glob(filepath.Join(w.dir, ".reprise", "jetstream", "$G", "streams", logOf(key), "msgs", "*.blk"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, block := range blocks {
		b, err := os.ReadFile(block)
		if err != nil {
			w.t.Fatal(err)
		}
		subject := bytes.Index(b, []byte(messages.Subjects{}.Log(agentID(key))))
		if subject < 0 {
			continue
		}
		if at := bytes.Index(b[subject:], []byte(text)); at >= 0 {
			b[subject+at] ^= 1
			if err := os.WriteFile(block, b, 0o600); err != nil {
				w.t.Fatal(err)
			}
			return
		}
	}
	w.t.Fatalf("%q is in no block of %s", text, logOf(key))
}

// A damaged agent is deleted with the forks that it has on record before its damage, or without those
// if they are detached.
func TestDeleteDamagedWithForks(t *testing.T) { // A29
	w := newWorld(t)
	w.file("reprise.yaml", small)
	node := w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed")
	for _, key := range []string{"a", "b"} {
		w.run("ask", "assistant/"+key, "What is 17 times 3?").exits(0, "51")
		w.run("fork", "assistant/"+key, "assistant/fork-"+key).exits(0)
		w.publishFrame(key, func(f *messages.Frame) { f.First += 2 }, func(_ string, b []byte) []byte { return b })
	}
	if code := node.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d\n%s", code, node.errs)
	}
	w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed")
	w.run("delete", "assistant/a", "--yes").exits(1, "has forks that begin with its events, such as assistant/fork-a")
	w.run("delete", "assistant/a", "--cascade", "--yes").exits(0, "cannot be read to its end", "assistant/fork-a: deleted", "assistant/a: deleted")
	w.run("delete", "assistant/b", "--detach", "--yes").exits(0, "assistant/fork-b: detached", "assistant/b: deleted")
	w.run("history", "assistant/fork-b").exits(0, "17 times 3 is 51")
}
