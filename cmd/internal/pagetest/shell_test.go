//go:build unix

package pagetest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a command may take: builds of Go programs are commands.
const patience = 4 * time.Minute

// driver runs commands that it reads from descriptor 3 and writes their exit codes to descriptor 4. What
// they print goes to a file, so that what a program in the background prints later is not taken for
// the output of the next command.
const driver = `
page_code=0
while IFS= read -r -d '' page_command <&3; do
	eval "(exit $page_code)
$page_command" </dev/null >"$1" 2>&1 3<&- 4>&-
	page_code=$?
	echo "$page_code" >&4
done
`

// shell is a bash that lives as long as a page.
type shell struct {
	t     *testing.T
	dir   string
	cmd   *exec.Cmd
	in    io.WriteCloser
	codes *bufio.Reader
	out   string            // the file that has what a command prints
	ports map[string]string // of the page, and what stands for them
	nodes []*node
	plain *node // the one that ends when another one starts
	ended bool
}

// node is a process in the background.
type node struct {
	pid   string
	pipe  string        // a named pipe to which it prints
	ready chan struct{} // closed when it is, or has ended
	ended chan struct{} // closed when it has

	mu      sync.Mutex
	printed bytes.Buffer
}

// startShell starts a bash in a folder.
func startShell(t *testing.T, dir string, env []string) *shell {
	t.Helper()
	in, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read, codes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, dir: dir, in: write, codes: bufio.NewReader(read), out: filepath.Join(t.TempDir(), "out"), ports: make(map[string]string)}
	s.cmd = exec.Command("bash", "--noprofile", "--norc", "-c", driver, "page", s.out)
	s.cmd.Dir, s.cmd.Env, s.cmd.ExtraFiles = dir, append(env, "PWD="+dir, "PAGE_NATS="+s.port("4222")), []*os.File{in, codes}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var errs bytes.Buffer
	s.cmd.Stderr = &errs
	s.cmd.WaitDelay = time.Second
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = in.Close(), codes.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		_ = s.cmd.Wait()
		_, _ = write.Close(), read.Close()
		for _, n := range s.nodes {
			if f, err := os.OpenFile(n.pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // so that none is read that no node has opened
				_ = f.Close()
			}
			<-n.ended
		}
	})
	return s
}

// run runs a command and returns what it prints. If the command starts a node it is left running once it is ready,
// unless the page asks for its exit code or for a part of what it prints: that node ends.
func (s *shell) run(text string, asked bool) (output string, code int, err error) {
	is, body, after := parseNode(text)
	ends := asked && after == "" || pipeline.MatchString(body)
	if is && !ends {
		return s.startNode(body, after)
	}
	if is {
		text = s.withPorts(body)
	}
	output, code, err = s.eval(s.translate(text))
	if murder.MatchString(text) {
		s.mourn()
	}
	return s.restore(output), code, err
}

// mourn waits until the newest node has ended.
func (s *shell) mourn() {
	for _, n := range slices.Backward(s.nodes) {
		if n.over() {
			continue
		}
		select {
		case <-n.ended:
		case <-time.After(5 * time.Second): // it was another process
		}
		return
	}
}

// eval runs a command as it is.
func (s *shell) eval(text string) (output string, code int, err error) {
	if s.ended {
		return "", 0, errors.New("the shell has ended before")
	}
	if _, err := io.WriteString(s.in, text+"\x00"); err != nil {
		return "", 0, err
	}
	late := time.AfterFunc(patience, func() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) })
	line, err := s.codes.ReadString('\n')
	if s.ended = err != nil; s.ended && !late.Stop() {
		err = fmt.Errorf("it did not end in %s", patience)
	} else if s.ended {
		err = errors.New("it has ended the shell of the page")
	}
	late.Stop()
	data, readErr := os.ReadFile(s.out)
	if readErr != nil {
		return "", 0, readErr
	}
	output = killed.ReplaceAllString(string(data), "")
	if err != nil {
		return output, 0, err
	}
	code, err = strconv.Atoi(strings.TrimSpace(line))
	return output, code, err
}

// killed is what bash prints of a job in the background that a signal has ended.
var killed = regexp.MustCompile(`(?m)^\S+: line \d+: +\d+ (Killed|Terminated)\b.*\n(?:\t.*\n)*`)

var (
	nodeLine   = regexp.MustCompile(`^(\w+=\S+ )*(\S*/)?reprise (dev|serve)\b`)
	pipeline   = regexp.MustCompile(`[^|]\|[^|]`)
	murder     = regexp.MustCompile(`\bkill -(9|KILL)\b`)
	background = regexp.MustCompile(`(?s)^(.*?)\s*&\s*(\w+=\$!)?\s*$`)
)

// parseNode reports whether a command starts a node. If so it returns the command itself and what follows
// it: nothing, or & and an assignment of its process id.
func parseNode(text string) (is bool, body, after string) {
	if !nodeLine.MatchString(text) || strings.Contains(text, "--help") || strings.Contains(text, "--version") {
		return false, "", ""
	}
	if m := background.FindStringSubmatch(text); m != nil && !strings.HasSuffix(m[1], "&") {
		return true, m[1], "& " + m[2]
	}
	return true, text, ""
}

// startNode starts a node and returns when it is ready, with what it prints until then.
func (s *shell) startNode(body, after string) (output string, code int, err error) {
	if s.plain != nil {
		if _, _, err := s.eval("kill -TERM " + s.plain.pid + " && wait " + s.plain.pid); err != nil {
			return "", 0, err
		}
		s.plain = nil
	}
	body = s.withPorts(body)
	pipe := filepath.Join(s.t.TempDir(), "node")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return "", 0, err
	}
	n := &node{pipe: pipe, ready: make(chan struct{}), ended: make(chan struct{})}
	s.nodes = append(s.nodes, n)
	go n.read()
	n.pid, code, err = s.eval(body + " >" + pipe + " 2>&1 " + strings.TrimSpace("& "+strings.TrimPrefix(after, "&")) + "\necho $!")
	n.pid = strings.TrimSpace(n.pid)
	if err != nil || code != 0 {
		return n.pid, code, err
	}
	if after == "" {
		s.plain = n
	}
	select {
	case <-n.ready:
	case <-time.After(patience):
		return n.text(), 0, fmt.Errorf("the node was not ready in %s", patience)
	}
	if !strings.Contains(n.text(), "is ready") {
		return s.restore(n.text()), 0, errors.New("the node has ended before it was ready")
	}
	return s.restore(n.text()), 0, nil
}

// elsewhere matches the start of a node that names its NATS server.
var elsewhere = regexp.MustCompile(`--(listen|nats|context)\b|\bNATS_URL=`)

// withPorts is the start of a node with the ports of this run, and with the name that pages show.
func (s *shell) withPorts(body string) string {
	embedded, http := s.port("4222"), s.port("8080")
	for _, n := range s.nodes {
		if !n.over() {
			embedded, http = "0", "0"
		}
	}
	body = s.translate(body)
	var more string
	if !strings.Contains(body, "--name") {
		more += " --name laptop"
	}
	if !strings.Contains(body, "--http") {
		more += " --http 127.0.0.1:" + http
	}
	if !elsewhere.MatchString(body) {
		more += ` $([ -n "$NATS_URL" ] || echo --listen 127.0.0.1:` + embedded + `)`
	}
	start := nodeLine.FindString(body)
	return start + more + strings.TrimPrefix(body, start)
}

// read reads what the node prints until it ends.
func (n *node) read() {
	defer close(n.ended)
	ready := sync.OnceFunc(func() { close(n.ready) })
	defer ready()
	f, err := os.Open(n.pipe)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewReader(f); err == nil; {
		var line string
		line, err = lines.ReadString('\n')
		n.mu.Lock()
		n.printed.WriteString(line)
		n.mu.Unlock()
		if strings.HasPrefix(line, "reprise serve is ready") || strings.HasPrefix(line, "Ctrl-C stops") {
			ready()
		}
	}
}

// text is what the node has printed.
func (n *node) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.printed.String()
}

// over reports whether the node has ended.
func (n *node) over() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}

// ofThisMachine are addresses that a page names.
var ofThisMachine = regexp.MustCompile(`((?:127\.0\.0\.1|localhost|0\.0\.0\.0|\[::1\]|--(?:http|listen)[ =]):)(\d{4,5})\b`)

// translate puts the ports of this run into a text of the page.
func (s *shell) translate(text string) string {
	return ofThisMachine.ReplaceAllStringFunc(text, func(address string) string {
		m := ofThisMachine.FindStringSubmatch(address)
		return m[1] + s.port(m[2])
	})
}

// port is a free port in place of one of the page.
func (s *shell) port(shown string) string {
	if s.ports[shown] == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.t.Fatal(err)
		}
		_, s.ports[shown], _ = net.SplitHostPort(l.Addr().String())
		_ = l.Close()
	}
	return s.ports[shown]
}

// restore puts what the page shows into an output: its ports, and ~ for its folder.
func (s *shell) restore(output string) string {
	for shown, used := range s.ports {
		output = regexp.MustCompile(`:`+used+`\b`).ReplaceAllString(output, ":"+shown)
	}
	return strings.ReplaceAll(output, s.dir, "~")
}
