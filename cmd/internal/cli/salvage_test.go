package cli_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cmd/internal/cli"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// reprise runs a command within the test.
func reprise(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Main(append([]string{"reprise"}, args...), strings.NewReader(""), &out, &errs)
	return result{t, strings.Join(args, " "), code, out.String(), errs.String()}
}

// killed returns the data folder that a killed server leaves which has five frames of each
// agent, and these.
func killed(t *testing.T, agents ...messages.AgentID) (dir string, frames map[messages.AgentID][]eventlog.Position) {
	t.Helper()
	running := t.TempDir()
	_, nc := embeddedtest.Start(t, running)
	log, err := natslog.Open(t.Context(), natslog.Config{Conns: []*nats.Conn{nc}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	frames = make(map[messages.AgentID][]eventlog.Position)
	for _, a := range agents {
		var tail eventlog.Position
		for range 5 {
			if tail, err = log.Append(t.Context(), logtest.Entry(t, a, tail)); err != nil {
				t.Fatal(err)
			}
			frames[a] = append(frames[a], tail)
		}
		if err := log.Mark(t.Context(), a.Partition(), log.Position(a.Partition())); err != nil {
			t.Fatal(err)
		}
	}
	reprise(t, "doctor", "--data", running, "--salvage", filepath.Join(t.TempDir(), "store.tar")).exits(1, "is in use by process", "stop it first", "reprise backup")
	return embeddedtest.Crash(t, running), frames
}

// TestDoctorSalvage copies what can be read of a folder to a backup, and restores it.
func TestDoctorSalvage(t *testing.T) { // A29
	t.Setenv("NATS_URL", "")
	t.Setenv("NO_COLOR", "1")
	beside := t.TempDir()
	file := func(name string) string { return filepath.Join(beside, name) }
	flipped, short, sound := logtest.Agent("flipped"), logtest.Agent("short"), logtest.Agent("sound")
	dir, frames := killed(t, flipped, short, sound)

	reprise(t, "doctor", "--data", dir, "--salvage", file("whole.tar")).exits(0, "ok    salvage", "15 messages of 23 streams", "reprise restore "+file("whole.tar"))
	reprise(t, "restore", file("whole.tar"), "--data", file("whole")).exits(0, "is whole", "ok    log", "3 agents with 15 frames")

	unrecorded := embeddedtest.Crash(t, dir)
	if err := os.RemoveAll(filepath.Join(unrecorded, "jetstream", "$G", "streams", natslog.MarksOf(messages.Subjects{}))); err != nil {
		t.Fatal(err)
	}
	reprise(t, "doctor", "--data", unrecorded, "--salvage", filepath.Join(t.TempDir(), "store.tar")).exits(0, "warn  salvage", "15 messages", "is not known", "REPRISE_LOG_4")

	for a, n := range map[messages.AgentID]int{flipped: 2, short: 4} {
		stream := natslog.NamesOf(messages.Subjects{}).Log(a.Partition())
		embeddedtest.Flip(t, dir, stream, string(frames[a][n].Frame)+" ")
	}
	r := reprise(t, "doctor", "--data", dir, "--salvage", file("store.tar")).exits(1, "13 messages of 23 streams", "2 places", "of 2 agents")
	for a, n := range map[messages.AgentID]int{flipped: 2, short: 4} {
		if line := fmt.Sprintf("(%s sequence %d)", natslog.NamesOf(messages.Subjects{}).Log(a.Partition()), frames[a][n].Seq); !strings.Contains(r.out, a.String()+" "+line) {
			t.Errorf("%s is not named with %s:\n%s", a, line, r.out)
		}
	}
	if strings.Count(r.out, "its newest events are lost") != 1 || !strings.Contains(r.out, short.String()+": "+natslog.NamesOf(messages.Subjects{}).Log(short.Partition())+": its newest events are lost") {
		t.Errorf("the agent that was cut short is not named:\n%s", r.out)
	}
	lines := reprise(t, "doctor", "--data", dir, "--salvage", file("json.tar"), "-o", "json").exits(1).objects()
	if sum := lines[len(lines)-1]; len(lines) != 4 || lines[0]["type"] != "finding" || sum["ok"] != false || sum["copied"] != 13.0 || sum["left_out"] != 2.0 || fmt.Sprint(sum["agents"]) != "[test/short test/flipped]" && fmt.Sprint(sum["agents"]) != "[test/flipped test/short]" {
		t.Errorf("as JSON: %v", lines)
	}
	reprise(t, "restore", file("store.tar"), "--data", file("again")).exits(1, "is whole", "restored to", "13 frames, 11 events", flipped.String()+" at event 3", "not sound")

	left, err := os.ReadDir(beside)
	if err != nil || len(left) != 5 {
		t.Errorf("left beside the backups: %v, %v", left, err)
	}
	for what, c := range map[string]struct {
		args []string
		code int
		say  string
	}{
		"a file that is there":  {[]string{"--data", dir, "--salvage", file("store.tar")}, 1, "store.tar is there already"},
		"a file in the folder":  {[]string{"--data", dir, "--salvage", filepath.Join(dir, "jetstream", "x.tar")}, 1, "is in the data folder"},
		"no folder for it":      {[]string{"--data", dir, "--salvage", file("no/x.tar")}, 1, "does not exist"},
		"no data folder":        {[]string{"--data", t.TempDir(), "--salvage", file("x.tar")}, 1, "no node has used it"},
		"a folder not there":    {[]string{"--data", file("none"), "--salvage", file("x.tar")}, 1, "none"},
		"no name":               {[]string{"--data", dir, "--salvage", ""}, 2, "--salvage is empty"},
		"standard output":       {[]string{"--data", dir, "--salvage", "-"}, 2, "name a file"},
		"no folder named":       {[]string{"--salvage", file("x.tar")}, 2, "--data"},
		"a server":              {[]string{"--data", dir, "--salvage", file("x.tar"), "--nats", "nats://127.0.0.1:1"}, 2, "--nats"},
		"a context":             {[]string{"--data", dir, "--salvage", file("x.tar"), "--context", "x"}, 2, "--context"},
		"an agent":              {[]string{"assistant/main", "--data", dir, "--salvage", file("x.tar")}, 2, "whole folder"},
		"deep":                  {[]string{"--data", dir, "--salvage", file("x.tar"), "--deep"}, 2, "whole folder"},
		"quick":                 {[]string{"--data", dir, "--salvage", file("x.tar"), "--quick"}, 2, "whole folder"},
		"repair":                {[]string{"--data", dir, "--salvage", file("x.tar"), "--repair"}, 2, "whole folder"},
		"rate":                  {[]string{"--data", dir, "--salvage", file("x.tar"), "--rate", "5"}, 2, "whole folder"},
		"a loss to be accepted": {[]string{"--data", dir, "--salvage", file("x.tar"), "--accept-loss", "REPRISE_LOG_1", "--reason", "x"}, 2, "whole folder"},
	} {
		t.Run(what, func(t *testing.T) { reprise(t, append([]string{"doctor"}, c.args...)...).exits(c.code, c.say) })
	}
	if now, err := os.ReadDir(beside); err != nil || len(now) != len(left) {
		t.Errorf("a refusal left something: %v, %v", now, err)
	}
}

// TestSalvagedStore salvages the folder of a node that was killed, and has another
// node continue with what is restored.
func TestSalvagedStore(t *testing.T) { // A29
	w := newWorld(t)
	w.file("reprise.yaml", paying)
	w.file("pay.sh", "echo paid >>payments; echo paid\n")
	node := w.node("serve", "--listen", "127.0.0.1:0", "--sync", "always")
	other := elsewhere("bank")
	for _, key := range []string{"bank", other, "gone"} {
		w.run("ask", "assistant/"+key, "--id", "pay-"+key, "use pay").exits(0)
		w.run("ask", "assistant/"+key, "--id", "two-"+key, "What is 17 times 3?").exits(0)
	}
	w.run("delete", "assistant/gone", "--yes", "--reason", "she asked for it").exits(0, "deleted")
	w.recorded("bank")
	node.kill()
	w.spoil("bank", 2)
	w.run("doctor", "--data", ".reprise", "--salvage", "store.tar").exits(1, "fail  file", "assistant/bank", logOf("bank"), "1 place is left out", "of 1 agent as")
	w.run("restore", "store.tar", "--data", "again").exits(1, "restored to again", "assistant/bank", "not sound")
	node = w.node("serve", "--data", "again", "--listen", "127.0.0.1:0", "--sync", "always")
	w.run("ask", "assistant/bank", "--id", "pay-bank", "--data", "again", "use pay").exits(1, "damaged")
	w.run("ask", "assistant/"+other, "--id", "pay-"+other, "--data", "again", "use pay").exits(0)
	w.run("ask", "assistant/"+other, "What is 6 times 3?", "--data", "again").exits(0, "6 times 3")
	w.run("history", "assistant/"+other, "--data", "again").exits(0, "17 times 3")
	w.run("show", "assistant/gone", "--data", "again").exits(0, "deleted", "she asked for it")
	if payments, err := os.ReadFile(filepath.Join(w.dir, "payments")); err != nil || string(payments) != strings.Repeat("paid\n", 3) {
		t.Errorf("payments: %q, %v", payments, err)
	}
	if code := node.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, node.errs)
	}
}
