package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// lookingFile defines an agent whose model is that of a server, and two tools.
const lookingFile = `agents:
  support: {model: mine/old, instructions: Be kind., tools: [look, note], max_attempts: 1}
tools:
  look: {command: [sh, -c, "echo look >>ran.txt; cat stock.txt"], description: Look an order up, read_only: true}
  note: {command: [sh, -c, "echo note >>ran.txt; echo noted"], description: Note it down}
providers:
  mine: {api_key: none, base_url: "%s/v1", api: chat}
  other: {api_key: none, base_url: "%s/v1", api: chat}
`

// lookingServer is a model that calls a tool and then repeats its result; the model "new" is longer, and
// "odd" asks for an order of its own.
func lookingServer(t *testing.T) (url string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked struct {
			Model    string
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Error(err)
		}
		last := asked.Messages[len(asked.Messages)-1]
		w.Header().Set("Content-Type", "application/json")
		if last.Role != "tool" {
			order := map[bool]int{true: 9, false: 7}[asked.Model == "odd"]
			_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c%d","type":"function","function":{"name":"look","arguments":"{\"order\":%d}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`, len(asked.Messages), order)
			return
		}
		answer, _ := json.Marshal("It is " + last.Content + map[bool]string{true: ". Can I help you with anything else?"}[asked.Model == "new"])
		_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":5}}`, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// lookingWorld has a node with two agents that looked an order up, and the file all.jsonl.gz with both; the
// tool finds something else by now. live are the arguments of verify with the model of a server at url.
func lookingWorld(t *testing.T) (w *world, url string, live func(args ...string) []string) {
	w, url = newWorld(t), lookingServer(t)
	w.file("reprise.yaml", fmt.Sprintf(lookingFile, url, url))
	w.file("stock.txt", "there")
	w.dev()
	for _, agent := range []string{"support/a", "support/b"} {
		w.run("ask", agent, "Where is order 7?", "--person", "carol").exits(0, "It is there")
	}
	w.file("stock.txt", "gone")
	w.run("export", "--all", "--to", "all.jsonl.gz").exits(0)
	return w, url, func(args ...string) []string {
		return append([]string{"verify", "--candidate", "reprise.yaml", "--live-model"}, args...)
	}
}

func TestVerifyLive(t *testing.T) { // A82
	w, url, live := lookingWorld(t)
	w.part("model", func(t *testing.T, w *world) {
		w.run(live("--kind", "support")...).exits(0, "support/a: same; turns: 1; calls: 1 equal, 0 changed, 0 missing, 0 new",
			"used: recorded 2 model calls, 30 tokens in, 7 out; now 2 model calls", "support/b: same",
			"2 agents: 2 same, 0 differ, 0 failed, 0 cannot be run again\n  used: recorded 4 model calls, 60 tokens in, 14 out; now 4 model calls")
		w.run(live("--from-file", "all.jsonl.gz", "--set", "model=mine/new")...).exits(0, "support/b: differs", "first difference, in turn 1",
			"recorded: It is there", "now:      It is there. Can I help you")
		w.run(live("support/a", "--set", "model=other/odd")...).exits(0, `recorded: look({"order":7})`, `now:      look({"order":9})`,
			`not on record: look({"order":9}) has no result`)
		o := w.run(live("support/a", "-o", "json")...).exits(0).objects()
		if len(o) != 1 || o[0]["agent"] != "support/a" || o[0]["result"] != "same" || o[0]["used"] == nil {
			t.Errorf("got %v", o)
		}
		w.run("verify", "support/a").exits(0, "equal, 12 events") // which was not touched
		if ran, err := os.ReadFile(filepath.Join(w.dir, "ran.txt")); err != nil || string(ran) != "look\nlook\n" {
			t.Errorf("tools ran: %q, %v", ran, err)
		}
	})
	w.part("grade", func(t *testing.T, w *world) {
		w.file("grade.sh", "#!/bin/sh\ngrep -q 'anything else' && echo 0.25 || echo '{\"score\":1,\"reason\":\"brief\"}'\n")
		w.run(live("--all", "--set", "model=mine/new", "--grade", "sh grade.sh")...).exits(0, "score: recorded 1 (brief); now 0.25",
			"AGENT      RECORDED  NOW    CHANGE", "support/b  1.000     0.250  -0.750", "mean       1.000     0.250  -0.750")
		w.run(live("--all", "--set", "model=mine/new", "--grade", "sh grade.sh", "--min-score", "0.2")...).exits(0)
		w.run(live("--all", "--set", "model=mine/new", "--grade", "sh grade.sh", "--min-score", "0.3")...).exits(1, "mean", "2 scores under --min-score 0.3")
		w.run(live("support/a", "--grade", "sh -c false")...).exits(1, "no score: the recorded run has no score: exit code 1")
		w.run(live("support/a", "--grade", "echo good")...).exits(1, `it printed "good"`)
		w.run(live("support/a", "--grade", "./none.sh")...).exits(2, "--grade", "none.sh")
		silent, err := exec.LookPath("true")
		if err == nil {
			err = os.Symlink(silent, filepath.Join(w.dir, "my true"))
		}
		if err != nil {
			t.Fatal(err)
		}
		w.run(live("support/a", "--grade", "./my true")...).exits(1, `it printed ""`)
		w.run(live("--all", "--grade", "echo 1e308")...).exits(1, "no score: the recorded run has no score: the score is 1e+308: it must be a number from -1e+09 to 1e+09")
		w.run(live("--all", "--grade", "echo 1e9")...).exits(0, "mean       1000000000.000  1000000000.000  0.000")
	})
	w.part("tools", func(t *testing.T, w *world) {
		w.run("verify", "--candidate", "reprise.yaml", "--live-tools", "support/a").exits(1, "support/a: calls made again: 0 with the recorded result, 1 with another",
			"recorded: there", "now:      gone", "ran: look (1)")
		w.run("verify", "--candidate", "reprise.yaml", "--live-tools", "--all").exits(1, "2 agents: 0 same, 2 differ, 0 failed, 0 cannot be run again")
		w.run(live("--live-tools", "support/a")...).exits(0, "now:      It is gone", "ran: look (1)")
	})
	w.part("bad", func(t *testing.T, w *world) {
		w.file("down.yaml", fmt.Sprintf(lookingFile, "http://127.0.0.1:1", url))
		r := w.run("verify", "--candidate", "down.yaml", "--live-model", "--from-file", "all.jsonl.gz").exits(1, "support/a: failed: turn 1: the model could not be reached", "support/b: failed",
			"2 agents: 0 same, 0 differ, 2 failed, 0 cannot be run again")
		if strings.Contains(r.out, "difference") {
			t.Errorf("a model that cannot be reached is a difference:\n%s", r.out)
		}
		w.run("export", "support/a", "--to", "redacted.jsonl.gz", "--redact", "carol").exits(0)
		w.run(live("--from-file", "redacted.jsonl.gz")...).exits(1, "cannot be run again: texts were replaced when it was exported (redacted)")
		w.run("import", "redacted.jsonl.gz", "--as", "support/imported").exits(0)
		w.run(live("support/imported")...).exits(1, "cannot be run again: texts were replaced before it was imported")
		w.file("stock.txt", strings.Repeat("x", 600_000))
		w.run("ask", "support/large", "Where is order 7?").exits(0)
		w.run("export", "support/large", "--to", "bare.jsonl.gz", "--no-blobs").exits(0)
		w.run(live("--from-file", "bare.jsonl.gz")...).exits(1, "cannot be run again: payload", "export it without --no-blobs")
		w.run("import", "bare.jsonl.gz", "--as", "support/bare").exits(0)
		w.run(live("support/bare", "support/none", "support/a")...).exits(1, "support/bare: cannot be run again: payload", "support/a: same",
			"support/none: cannot be run again: agent support/none does not exist", "3 agents: 1 same, 0 differ, 0 failed, 2 cannot be run again")
		w.run("fork", "support/a", "support/fork").exits(0)
		w.run(live("support/fork")...).exits(0, "support/fork: same; turns: 1")
		w.run(live("support/none")...).exits(1, "does not exist")
		w.run(live("--kind", "none")...).exits(1, "nothing was run")
		w.run("delete", "support/bare", "--yes").exits(0)
		w.run(live("support/bare")...).exits(1, "support/bare: cannot be run again: it is deleted")
		w.file("cut.jsonl", strings.Repeat("x", 10))
		w.run(live("--from-file", "cut.jsonl")...).exits(1, "cut.jsonl: line 1: the file is cut off here")
	})
}

func TestVerifyLiveUsage(t *testing.T) {
	w := newWorld(t)
	w.run("verify", "support/a", "--live-model").exits(2, "name it with --candidate")
	w.run("verify", "support/a", "--candidate", "x.yaml", "--set", "model=a/b").exits(2, "give --live-model, too")
	w.run("verify", "support/a", "--candidate", "x.yaml", "--grade", "x").exits(2, "give --live-model, too")
	w.run("verify", "support/a", "--candidate", "x.yaml", "--live-model", "--min-score", "1").exits(2, "name one with --grade")
	for _, tools := range []string{"--live-tools=some", "--live-tools="} {
		w.run("verify", "support/a", "--candidate", "x.yaml", tools).exits(2, "write --live-tools for those that only read, or --live-tools=all")
	}
	w.run("verify", "support/a", "--candidate", "x.yaml", "--live-model", "--set", "colour=red").exits(2, `--set "colour=red": what can be set is model, instructions and tools`)
	w.run("verify", "support/a", "--candidate", "x.yaml", "--live-model", "--set", "model=a/b", "--set", "model=c/d").exits(2, `--set "model=a/b" and --set "model=c/d" both set model`)
	w.run("verify", "support/a", "--candidate", "x.yaml", "--live-model", "--set", "tools=").exits(2, `--set "tools=": write NAME=VALUE`)
	w.run("verify", "support/a", "--candidate", "x.yaml", "--live-model", "--grade", "").exits(2, `--grade "": it names no program; name one, or leave the flag out`)
	w.run("verify", "support/a", "--candidate", "x.yaml", "--live-model", "--grade", "  ", "--min-score", "1").exits(2, "it names no program")
	w.run("verify", "support/a", "--candidate", "x.yaml", "--live-model", "--grade", "x", "--min-score", "NaN").exits(2, "--min-score NaN: scores are numbers from -1e+09 to 1e+09")
}
