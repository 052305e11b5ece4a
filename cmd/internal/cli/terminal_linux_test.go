package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// terminal is a program on a terminal of its own.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	screen *os.File
	said   string
}

// onTerminal starts the program as somebody at a terminal does.
func (w *world) onTerminal(args ...string) *terminal {
	w.t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		w.t.Skipf("there are no terminals here: %v", err)
	}
	w.t.Cleanup(func() { _ = screen.Close() })
	var number, unlock uint32
	ioctl(w.t, screen, syscall.TIOCGPTN, &number)
	ioctl(w.t, screen, syscall.TIOCSPTLCK, &unlock)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = tty.Close() }()
	cmd := w.command(args...)
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
	buffer := make([]byte, 4096)
	for {
		if _, rest, ok := strings.Cut(s.said, text); ok {
			s.said = rest
			return
		}
		n, err := s.screen.Read(buffer)
		if err != nil {
			s.t.Fatalf("the terminal was closed before it showed %q: %v\n%s", text, err, s.said)
		}
		s.said += string(buffer[:n])
	}
}

func (s *terminal) types(text string) {
	s.t.Helper()
	if _, err := s.screen.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// exits waits for the end of the program.
func (s *terminal) exits(code int) {
	s.t.Helper()
	_ = s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d\n%s", got, code, s.said)
	}
}

func TestPersonIsAsked(t *testing.T) { // A41 A42
	w := newWorld(t)
	w.dev()
	ask := func(agent string) *terminal { return w.onTerminal("ask", agent, "Refund 9900 cents for order 7") }

	yes := ask("support/yes")
	yes.sees(`refund({"order":7,"cents":9900})`)
	yes.sees("Let it run?")
	yes.types("certainly\n")
	yes.sees("none of these")
	yes.sees("Let it run?")
	yes.types("yes\n")
	yes.sees("Paid 9900 cents back for order 7.")
	yes.exits(0)

	no := ask("support/no")
	no.sees("Let it run?")
	no.types("no: Offer a voucher.\n")
	no.sees("Offer a voucher.")
	no.exits(0)
	if got := w.outputs("support/no"); len(got) != 1 || got[0] != "Offer a voucher." {
		t.Errorf("the model sees %q", got)
	}

	later := ask("support/later")
	later.sees("Let it run?")
	later.types("\n")
	later.sees("approve support/later")
	later.exits(3)

	always := ask("support/always")
	always.sees("Let it run?")
	always.types("always\n")
	always.sees("Paid")
	always.exits(0)
	w.run("ask", "support/always", "Refund 9900 cents for order 7").exits(0, "Paid")
	w.run("approvals", "support/always", "--remembered").exits(0, "granted")

	chat := w.onTerminal("chat", "support/chat")
	chat.sees("support/chat> ")
	chat.types("Refund 9900 cents for order 7\r")
	chat.sees("Let it run?")
	chat.types("never\r")
	chat.sees("support/chat> ")
	chat.types("\x04")
	chat.exits(0)
	w.run("approvals", "support/chat", "--remembered").exits(0, "denied")
}
