package messages

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// TestRefusals reads every body of testdata/refusals.txt and compares the answer.
// A line holds the kind of message, then headers as Name=value, then the body:
//
//	in BODY        to an agent's input subject
//	ctl BODY       to its command subject
//	peer BODY      from another agent
//	query BODY     as the request of a view
//	answer TEXT    as a person's answer to a question about a call
//	agent ADDRESS  as the address of an agent
//	reply SUBJECT  as the subject for replies
//
// A body that begins with a double quote is a Go string, which may hold any bytes,
// one that begins with msgpack is sent as msgpack, and «N x» stands for N times x.
// A line of four dashes and the answers follow. To add a case, add its line and
// run the test with -update, which writes the answers as they are now.
func TestRefusals(t *testing.T) {
	const file = "testdata/refusals.txt"
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := answered(t, string(want))
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	w, g := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			t.Errorf("line %d\ngot  %s\nwant %s", i+1, g[i], w[i])
		}
	}
	if len(w) != len(g) {
		t.Errorf("lines: got %d, want %d", len(g), len(w))
	}
	for _, command := range append(CommandTypes(FromCtl), CommandTypes(FromAgent)...) {
		if !strings.Contains(string(want), `{"type":"`+command+`"`) {
			t.Errorf("bodies of the command %s in %s: got none, want one", command, file)
		}
	}
}

// answered returns the text with its answers replaced by the present ones.
func answered(t *testing.T, text string) string {
	t.Helper()
	var out, answers strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		out.WriteString(line + "\n")
		if line != "----" {
			if line != "" && line[0] != '#' {
				answers.WriteString(answerTo(t, line) + "\n")
			}
			continue
		}
		for i+1 < len(lines) && lines[i+1] != "" {
			i++ // skip the old answer
		}
		out.WriteString(answers.String())
		answers.Reset()
	}
	return out.String()
}

// answerTo returns the parsed body of a line as JSON, or its refusal.
func answerTo(t *testing.T, line string) string {
	t.Helper()
	kind, rest, _ := strings.Cut(line, " ")
	header, body := bodyOf(t, rest)
	read, err := readAs(t, kind, header, body)
	if refused := new(Error); errors.As(err, &refused) {
		return fmt.Sprintf("refused %s: %s", refused.Code, strings.ReplaceAll(refused.Message, "\n", `\n`))
	} else if err != nil {
		return "refused without a code: " + err.Error()
	}
	if c, ok := read.(Command); ok {
		kind = c.CommandType()
	}
	b, err := json.Marshal(read)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return "accepted " + kind + " " + string(b)
}

func readAs(t *testing.T, kind string, header Header, body []byte) (any, error) {
	t.Helper()
	switch kind {
	case "in":
		return ParseInput(testAgent, header, body)
	case "ctl":
		return ParseCommand(testAgent, header, body)
	case "peer":
		return ParsePeer(testAgent, header, body)
	case "query":
		return ParseQuery(body)
	case "answer":
		return ParseDecision(string(body))
	case "agent":
		return ParseAgentID(string(body))
	case "reply":
		return string(body), Subjects{}.AllowNamedReply(testAgent.Tenant, string(body))
	}
	t.Fatalf("kind of message: got %q, want in, ctl, peer, query, answer, agent or reply", kind)
	return nil, nil
}

var (
	headerWord = regexp.MustCompile(`^([A-Z][A-Za-z-]*)=("(?:[^"\\]|\\.)*"|\S*) ?`)
	repeated   = regexp.MustCompile(`«(\d+) ([^»]+)»`)
)

// bodyOf returns the headers and the body of a line.
func bodyOf(t *testing.T, rest string) (Header, []byte) {
	t.Helper()
	var given []string
	for m := headerWord.FindStringSubmatch(rest); m != nil; m = headerWord.FindStringSubmatch(rest) {
		given, rest = append(given, m[1], expand(t, m[2])), rest[len(m[0]):]
	}
	packed, isMsgpack := strings.CutPrefix(rest, "msgpack ")
	if !isMsgpack {
		return headers(given...), []byte(expand(t, rest))
	}
	var v any
	err := json.Unmarshal([]byte(expand(t, packed)), &v)
	b, also := msgpack.Marshal(v)
	if err := errors.Join(err, also); err != nil {
		t.Fatalf("%s: %v", rest, err)
	}
	return headers(given...), b
}

// expand returns a text unquoted, with its repetitions written out.
func expand(t *testing.T, text string) string {
	t.Helper()
	if strings.HasPrefix(text, `"`) {
		unquoted, err := strconv.Unquote(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		text = unquoted
	}
	return repeated.ReplaceAllStringFunc(text, func(s string) string {
		m := repeated.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[1])
		return strings.Repeat(m[2], n)
	})
}
