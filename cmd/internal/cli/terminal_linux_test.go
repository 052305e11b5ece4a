package cli_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// terminal is a program on a terminal of its own.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	screen *os.File
	said   string
}

// onTerminal starts the program as a person at a terminal does.
func (w *world) onTerminal(args ...string) *terminal {
	w.t.Helper()
	return w.typedAhead("", args...)
}

// typedAhead is onTerminal for a person who types before the program runs.
func (w *world) typedAhead(text string, args ...string) *terminal {
	w.t.Helper()
	return w.onScreen(200, text, args...)
}

// onScreen is typedAhead on a terminal with that many columns.
func (w *world) onScreen(columns uint32, text string, args ...string) *terminal {
	w.t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		w.t.Skipf("there are no terminals here: %v", err)
	}
	w.t.Cleanup(func() { _ = screen.Close() })
	var number, unlock uint32
	ioctl(w.t, screen, syscall.TIOCGPTN, &number)
	ioctl(w.t, screen, syscall.TIOCSPTLCK, &unlock)
	size := [2]uint32{24 | columns<<16} // rows and columns, 16 bits each
	ioctl(w.t, screen, syscall.TIOCSWINSZ, &size[0])
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = tty.Close() }()
	if _, err := screen.WriteString(text); err != nil {
		w.t.Fatal(err)
	}
	cmd := w.command(w.t.Context(), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return &terminal{t: w.t, cmd: cmd, screen: screen}
}

func ioctl(t *testing.T, f *os.File, request uintptr, value *uint32) {
	t.Helper()
	conn, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var errno syscall.Errno
	if err := conn.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(value)))
	}); err != nil || errno != 0 {
		t.Fatal(err, errno)
	}
}

// sees reads the screen until it shows text; what came before is forgotten.
func (s *terminal) sees(text string) {
	s.t.Helper()
	s.seesOne(text)
}

// seesOne is sees for one of several texts, and returns it.
func (s *terminal) seesOne(texts ...string) (text string) {
	s.t.Helper()
	s.bound()
	buffer := make([]byte, 4096)
	for {
		for _, text := range texts {
			if _, rest, ok := strings.Cut(s.said, text); ok {
				s.said = rest
				return text
			}
		}
		n, err := s.screen.Read(buffer)
		if err != nil {
			s.t.Fatalf("the terminal did not show %q: %v\n%s", texts, err, s.said)
		}
		s.said += string(buffer[:n])
	}
}

// bound has what is read of the screen end after three minutes.
func (s *terminal) bound() {
	s.t.Helper()
	if err := s.screen.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *terminal) types(text string) {
	s.t.Helper()
	if _, err := s.screen.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// exits waits for the end of the program, and keeps what it said last.
func (s *terminal) exits(code int) {
	s.t.Helper()
	s.bound()
	rest, err := io.ReadAll(s.screen) // the screen ends with an error once the program is gone
	s.said += string(rest)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.t.Errorf("it did not end by itself: %v", s.cmd.Process.Kill())
	}
	_ = s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d\n%s", got, code, s.said)
	}
}

// agentAsks reads the beginning of a question about a refund, and reports whether the agent
// asks it or the program in its place.
func (s *terminal) agentAsks() bool {
	s.t.Helper()
	const itself = "the tool refund"
	return s.seesOne(itself, "waits for approval: ") == itself
}

func TestPersonIsAsked(t *testing.T) { // A41 A42
	w := newWorld(t)
	w.dev()
	commands := subscribe(t, w, "reprise.ctl.>")
	const text = "Refund 9900 cents for order 7"
	ask := func(agent string) *terminal { return w.onTerminal("ask", agent, text) }
	// asked has the agent itself ask. Where its question comes too late, the program
	// asks in its place, to decide by a command: another agent is tried then.
	asked := func(key string) (person *terminal, agent string) {
		for i := 0; ; i++ {
			agent = fmt.Sprintf("support/%s%d", key, i)
			if person = ask(agent); person.agentAsks() {
				return person, agent
			}
			person.sees("Let it run?")
			person.types("\n")
			person.exits(3)
		}
	}

	yes, _ := asked("yes")
	yes.sees(`{"order":7,"cents":9900}`)
	yes.sees("Let it run?")
	yes.types("certainly\n")
	yes.sees("is no answer")
	yes.sees("Let it run?")
	yes.types("yes\n")
	yes.sees("Paid 9900 cents back for order 7.")
	yes.exits(0)

	no, agent := asked("no")
	no.sees("Let it run?")
	no.types("no: Offer a voucher.\n")
	no.sees("Offer a voucher.")
	no.exits(0)
	if got := w.outputs(agent); len(got) != 1 || got[0] != "Offer a voucher." {
		t.Errorf("the model sees %q", got)
	}

	later := ask("support/later")
	later.sees("Let it run?")
	later.types("\n")
	later.sees("approve support/later")
	later.exits(3)

	hasty := w.typedAhead("yes\n", "ask", "support/hasty", text)
	hasty.sees("Let it run?")
	hasty.types("\n")
	hasty.sees("approve support/hasty")
	hasty.exits(3)

	always, agent := asked("always")
	always.sees("Let it run?")
	always.types("always\n")
	always.sees("Paid")
	always.exits(0)
	w.run("ask", agent, text).exits(0, "Paid")
	w.run("approvals", agent, "--remembered").exits(0, "granted")

	for i, heard := 0, false; !heard; i++ { // as in asked
		agent = fmt.Sprintf("support/chat%d", i)
		chat := w.onTerminal("chat", agent)
		chat.sees(agent + "> ")
		chat.types(text + "\r")
		heard = chat.agentAsks()
		chat.sees("Let it run?")
		chat.types(map[bool]string{true: "never\r", false: "\r"}[heard])
		chat.sees(agent + "> ")
		chat.types("\x04")
		chat.exits(0)
	}
	w.run("approvals", agent, "--remembered").exits(0, "denied")
	if n, _, err := commands.Pending(); n != 0 || err != nil {
		t.Errorf("%d commands were published by those who may be asked: %v", n, err)
	}
}

// TestPastedLinesAreNoAnswer pastes two lines into a chat: the second one is its
// next message, not the answer to what the first one leads to.
func TestPastedLinesAreNoAnswer(t *testing.T) { // A41
	w := newWorld(t)
	w.env = append(w.env, "TERM=xterm") // else lines come one by one
	w.dev()
	pasted := w.onTerminal("chat", "support/pasted")
	pasted.sees("support/pasted> ")
	pasted.types("Refund 9900 cents for order 7\ryes\r")
	pasted.sees("Let it run?")
	pasted.types("\r")
	pasted.sees("approve support/pasted")
	pasted.types("\x04")
	pasted.exits(0)
	w.run("approvals", "support/pasted").exits(0, "support/pasted", "refund")
}

// TestPasteIsOneInput pastes a traceback into a line that is begun, as a terminal sends it.
func TestPasteIsOneInput(t *testing.T) { // A41
	w := newWorld(t)
	w.env = append(w.env, "TERM=xterm")
	w.dev()
	chat := w.onTerminal("chat", "parrot/paste")
	chat.sees("parrot/paste> ")
	chat.types("look: \x1b[200~first\n\tsecond\nthird\n\x1b[201~\r")
	chat.sees("You said: “look: first")
	chat.sees("parrot/paste> ")
	chat.types("one\x03two\x1b\rthree \\\r")
	chat.sees("… ")
	chat.types("four\r")
	chat.sees("You said: “two")
	chat.sees("parrot/paste> ")
	chat.types("\x04")
	chat.exits(0)
	var inputs []string
	for _, item := range w.run("history", "parrot/paste", "-o", "json").exits(0).objects() {
		if item["role"] == "user" {
			inputs = append(inputs, fmt.Sprint(item["content"]))
		}
	}
	if len(inputs) != 2 || !strings.Contains(inputs[0], "look: first\n\tsecond\nthird") || !strings.Contains(inputs[1], "two\nthree \nfour") {
		t.Errorf("inputs %q", inputs)
	}
}

// TestAskStopped stops an ask while a tool runs.
func TestAskStopped(t *testing.T) { // A41
	w := holder(t)
	w.env = append(w.env, "TERM=xterm") // else nothing is shown while it runs
	w.dev()
	ask := w.onTerminal("ask", "worker/a", "Use hold.")
	w.started()
	ask.sees("hold … ")
	ask.types("\x03")
	ask.sees("turn t4 of worker/a continues")
	ask.exits(130)
	w.release()
	w.await("worker/a", "turn.completed")
}

// TestListOnTerminal reads a list by a pager, without one, and again and again.
func TestListOnTerminal(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "TERM=xterm", "PAGER=sed s/^/paged:/")
	node := w.dev()
	w.run("ask", "assistant/main", "hello").exits(0)
	for w.run("ls", "-o", "json").exits(0).out == "" { // the list follows the log
		if t.Context().Err() != nil {
			t.Fatal("no agent is listed")
		}
	}
	paged := w.onTerminal("ls")
	paged.sees("paged:AGENT")
	paged.sees("paged:assistant/main")
	paged.exits(0)
	plain := w.onTerminal("ls", "--no-pager", "--utc")
	plain.sees("AGENT")
	plain.sees(" UTC")
	plain.exits(0)
	watched := w.onTerminal("ls", "--watch")
	for range 2 {
		watched.sees("\x1b[H\x1b[2JAGENT")
	}
	node.end(syscall.SIGTERM)
	watched.sees("\x1b[H\x1b[2Jreprise: ")
	w.dev()
	watched.sees("\x1b[H\x1b[2JAGENT")
	watched.types("\x03")
	watched.exits(0)
	if strings.Contains(paged.said+plain.said+watched.said, "paged:AGENT") {
		t.Error("more than one was paged")
	}
	if r := w.run("ls").exits(0); strings.Contains(r.out, "paged") || strings.Contains(r.out, "UTC") {
		t.Errorf("without a terminal: %s", r.out)
	}
}

func TestPersonDecidesByCommand(t *testing.T) { // A41 A43
	w := newWorld(t)
	w.file("reprise.yaml", strings.Replace(gated, "[note, pay]}", "[note, pay], prompt_approves: false}", 1))
	w.dev()
	commands := subscribe(t, w, "reprise.ctl.default.clerk.a")
	some := w.onTerminal("ask", "clerk/a", "Use pay with amount 1. Use pay with amount 2. Use pay with amount 3.")
	some.sees(`pay({"amount":1})`)
	some.sees("Let it run?")
	some.types("perhaps\n")
	some.sees("is no answer")
	some.types("yes\n")
	if msg, err := commands.NextMsgWithContext(t.Context()); err != nil || !strings.Contains(string(msg.Data), "args_hash") {
		t.Errorf("%v, %v", msg, err)
	}
	some.sees(`pay({"amount":2})`)
	some.types("\n")
	some.sees("waits for a person (approval)")
	some.exits(3)
	if rest := some.said; strings.Contains(rest, `"amount":1`) || !strings.Contains(rest, `"amount":2`) || !strings.Contains(rest, `"amount":3`) {
		t.Errorf("what is left to decide: %s", rest)
	}
	w.await("clerk/a", "tool.completed")
	if p := w.lines("paid"); len(p) != 1 || !strings.Contains(p[0], "1") {
		t.Errorf("paid %v", p)
	}
}

func TestPersonIsAskedOneByOne(t *testing.T) { // A43
	w := newOffice(t)
	w.dev()
	some := w.onTerminal("ask", "clerk/a", "Use pay with amount 1. Use pay with amount 2. Use pay with amount 3.")
	for range 2 {
		some.sees("Let it run?")
		some.types("yes\n")
	}
	some.sees("Let it run?")
	some.types("\n")
	some.sees("waits for a person (approval)")
	some.exits(3)
	if rest := some.said; strings.Contains(rest, `"amount":1`) || strings.Contains(rest, `"amount":2`) || !strings.Contains(rest, `"amount":3`) {
		t.Errorf("what is left to decide: %s", rest)
	}
}

// TestLimitAndApproval has a turn reach its limit while a call waits: a decision
// alone does not let it continue.
func TestLimitAndApproval(t *testing.T) { // A17 A40
	w := holder(t)
	// The limit is long enough for a slow machine to begin the tool before.
	w.file("reprise.yaml", strings.Replace(holding, "agents:", "agents:\n  hurried: {model: demo/demo, tools: [hold, pay], when_reached: pause, budget: {turn: {max_duration: 2s}}}", 1)+`
  pay:
    command: [/bin/sh, -c, 'cat >>paid; echo paid']
    description: Pay an amount
    parameters: {type: object, properties: {amount: {type: integer}}, required: [amount]}
    approval: always
`)
	w.dev()
	const text = "Use hold. Use pay with amount 7."
	queued := func(agent string) func() result {
		w.started()
		waiting := w.begin("", "ask", agent, "hello", "--id", "behind")
		w.awaitInput(agent, "behind")
		w.await(agent, "budget.exhausted")
		w.release()
		return waiting
	}
	asking := w.begin("", "ask", "hurried/a", text)
	behind := queued("hurried/a")
	both := []string{"(max_duration)", `pay({"amount":7})`, "approve hurried/a call_", "resume hurried/a --max-duration "}
	asking().exits(3, append(both, "waits for a person")...)
	behind().exits(3, append(both, "queued behind turn t4")...)
	w.run("show", "hurried/a").exits(0, "approve hurried/a call_", "max_duration: ", "resume hurried/a --max-duration ")

	person := w.onTerminal("ask", "hurried/b", text)
	waits := queued("hurried/b")
	person.sees("Let it run?")
	person.types("yes\n")
	person.sees("waits for a person (max_duration)")
	person.sees("resume hurried/b --max-duration ")
	person.exits(3)
	waits().exits(3)
	w.await("hurried/b", "tool.completed")
}

// A person who says no has changed nothing, not even that the forks were to be detached.
func TestDeleteAsksBeforeItDetaches(t *testing.T) {
	w := newWorld(t)
	w.dev()
	w.run("ask", "assistant/a", "What is 17 times 3?").exits(0, "51")
	w.run("fork", "assistant/a", "assistant/b").exits(0)
	for _, args := range [][]string{{"delete", "assistant/a", "--detach"}, {"delete", "assistant/a", "--detach", "--children"}} {
		no := w.onTerminal(args...)
		no.sees("assistant/b would copy the events")
		no.sees("Write y or yes: ")
		no.types("n\n")
		no.exits(1)
		if got := w.run("show", "assistant/b").exits(0, "fork of").out; strings.Contains(got, "detached") {
			t.Errorf("%v was answered with no, and the fork is %s", args, got)
		}
	}
	yes := w.onTerminal("delete", "assistant/a", "--detach", "--children")
	yes.sees("Write y or yes: ")
	yes.types("y\n")
	yes.sees("assistant/b: detached")
	yes.exits(0)
	w.run("show", "assistant/b").exits(0, "detached from it")
	w.run("show", "assistant/a").exits(0, "deleted")
}
