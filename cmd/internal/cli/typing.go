package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// terminalLines reads inputs that the user edits, with a history in a file. An input is a
// line, or several: what is pasted at once, lines with a backslash at their end or Alt-Enter.
type terminalLines struct {
	app    *app
	file   *os.File
	editor *term.Terminal
	typed  *typed
	past   *past
	// before is how the terminal was. Nil: it is as it was.
	before *term.State
	// plain reads lines of a terminal that cannot move its cursor; nil: it can.
	plain  *bufio.Reader
	prompt string
}

func (a *app) newTerminalLines(prompt string) *terminalLines {
	l := &terminalLines{app: a, file: terminalOf(a.in), past: readPast(), prompt: prompt}
	l.typed = &typed{from: l.file}
	if dumb() {
		l.plain = bufio.NewReader(l.file)
		return l
	}
	l.editor = l.edits(l.typed)
	l.editor.History = l.past
	if l.before, _ = term.GetState(int(l.file.Fd())); l.before != nil {
		l.restoreOnTerm()
		quiet(l.file)
	}
	return l
}

// edits makes an editor of what from reads.
func (l *terminalLines) edits(from io.Reader) *term.Terminal {
	return term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{from, l.app.out}, "")
}

// restoreOnTerm restores the terminal before SIGTERM ends the process.
func (l *terminalLines) restoreOnTerm() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		l.restore()
		os.Exit(exitFailed)
	}()
}

// restore has the terminal be as it was before the chat.
func (l *terminalLines) restore() { _ = term.Restore(int(l.file.Fd()), l.before) }

// next is the next input. Ctrl-C at the prompt clears the line.
func (l *terminalLines) next() (string, error) {
	var lines []string
	for prompt := l.prompt; ; prompt = "… " {
		line, err := l.line(prompt)
		if err != nil {
			return "", io.EOF
		}
		line, more := strings.CutSuffix(line, `\`)
		if lines = append(lines, line); more {
			continue
		}
		line = strings.Join(lines, newline)
		l.past.remember(line)
		return l.typed.whole(line), nil
	}
}

func (l *terminalLines) line(prompt string) (string, error) {
	if l.plain == nil {
		return l.edited(l.editor, prompt)
	}
	l.app.printf("%s", prompt)
	line, err := l.plain.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// edited is a line that an editor returns.
func (l *terminalLines) edited(editor *term.Terminal, prompt string) (string, error) {
	fd := int(l.file.Fd())
	state, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, state) }()
	if width, height := terminalSize(l.app.out); width > 0 {
		_ = editor.SetSize(width, height) // where it is unknown it is taken to be 80 by 24
	}
	editor.SetBracketedPasteMode(true)
	defer editor.SetBracketedPasteMode(false)
	editor.SetPrompt(prompt)
	line, err := editor.ReadLine()
	if err != nil {
		l.app.printf("\r\n") // Ctrl-D has ended no line
	}
	return line, err
}

// person asks the person at the terminal; nil if it cannot.
func (l *terminalLines) person() asker {
	if l.plain != nil {
		return l.app.person()
	}
	return l.ask
}

// ask is one line that is not kept in the history. The first lines of a prompt
// of several are printed above it. Ctrl-C and Ctrl-D are no answer, nor is what
// was typed before: lines that are here already stay for next.
func (l *terminalLines) ask(_ context.Context, prompt string) (string, error) {
	discardTyped(l.file)
	if i := strings.LastIndexByte(prompt, '\n'); i >= 0 {
		l.app.printf("%s\n", prompt[:i])
		prompt = prompt[i+1:]
	}
	line, err := l.edited(l.edits(l.file), prompt)
	if err != nil {
		return "", io.EOF
	}
	return line, nil
}

// close saves the history and restores the terminal.
func (l *terminalLines) close() {
	if l.past.save(); l.before != nil {
		l.restore()
	}
}

// In a line that is edited these stand for the characters that would end it, or are no
// text to the editor.
const (
	newline = "␤"
	tab     = "␉"
)

// mostInline is how many bytes of a paste are shown in the line; a longer one has a name there.
const mostInline = 800

// typed is what is typed at a terminal in raw mode, for an editor of one line: a paste becomes
// part of the line, with all its lines, Alt-Enter begins a new one in it and Ctrl-C
// clears it.
type typed struct {
	from io.Reader
	// raw was read and not understood yet, ready is for the editor.
	raw, ready []byte
	// pasting reports whether raw is in a paste. pastes are those that have a name.
	pasting bool
	pastes  []string
}

// Read returns what the editor understands.
func (t *typed) Read(p []byte) (int, error) {
	for len(t.ready) == 0 {
		buffer := make([]byte, 4096)
		n, err := t.from.Read(buffer)
		switch t.raw = append(t.raw, buffer[:n]...); {
		case t.pasting && string(buffer[:n]) == ctrlC: // a key alone: the paste has no end
			t.raw, t.pasting, t.ready = nil, false, []byte(toEndAndClear)
		case n > 0:
			t.understand()
		}
		if err != nil && len(t.ready) == 0 {
			return 0, err
		}
	}
	n := copy(p, t.ready)
	t.ready = t.ready[n:]
	return n, nil
}

// How a terminal marks a paste, and what it sends for Alt-Enter; the keys of an editor that
// clear a line.
const (
	pasteBegins, pasteEnds = "\x1b[200~", "\x1b[201~"
	altEnter               = "\x1b\r"
	ctrlC                  = "\x03"
	toEndAndClear          = "\x05\x15"
)

var keys = strings.NewReplacer(altEnter, newline, ctrlC, toEndAndClear)

// understand takes what it can from raw: all but the beginning of a mark.
func (t *typed) understand() {
	for {
		mark := pasteBegins
		if t.pasting {
			mark = pasteEnds
		}
		before, after, found := strings.Cut(string(t.raw), mark)
		switch {
		case found && t.pasting:
			t.ready = append(t.ready, t.pasted(before)...)
		case found:
			t.ready = append(t.ready, keys.Replace(before)...)
		case t.pasting:
			return // until it is whole
		default:
			kept := begun(before, mark)
			t.ready = append(t.ready, keys.Replace(before[:len(before)-kept])...)
			t.raw = []byte(before[len(before)-kept:])
			return
		}
		t.raw, t.pasting = []byte(after), !t.pasting
	}
}

// begun is how many bytes at the end of text may begin a mark.
func begun(text, mark string) int {
	for n := min(len(text), len(mark)-1); n > 0; n-- {
		if strings.HasSuffix(text, mark[:n]) {
			return n
		}
	}
	return 0
}

// pasted is a paste as it is in the line.
func (t *typed) pasted(text string) string {
	text = strings.TrimRight(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	if len(text) > mostInline {
		t.pastes = append(t.pastes, text)
		return t.name(len(t.pastes) - 1)
	}
	return strings.NewReplacer("\n", newline, "\t", tab).Replace(text)
}

// name is the name of a long paste.
func (t *typed) name(i int) string {
	return fmt.Sprintf("[paste %d, %d lines]", i+1, 1+strings.Count(t.pastes[i], "\n"))
}

// whole is the input that an edited line stands for.
func (t *typed) whole(line string) string {
	line = strings.NewReplacer(newline, "\n", tab, "\t").Replace(line)
	for i, text := range t.pastes {
		line = strings.ReplaceAll(line, t.name(i), text)
	}
	return line
}

// past is the lines that were typed before, the newest last.
type past struct {
	file  string
	lines []string
}

// mostPast is how many lines are kept.
const mostPast = 1000

// readPast reads the history; one that cannot be read is empty.
func readPast() *past {
	p := new(past)
	if dir, err := os.UserConfigDir(); err == nil {
		p.file = filepath.Join(dir, "reprise", "chat_history")
	}
	if b, err := os.ReadFile(p.file); err == nil {
		p.lines = slices.Collect(strings.Lines(string(b)))
		for i, line := range p.lines {
			p.lines[i] = strings.TrimSuffix(line, "\n")
		}
	}
	return p
}

// Len is how many lines there are.
func (p *past) Len() int { return len(p.lines) }

// At is a line; 0 is the newest.
func (p *past) At(i int) string { return p.lines[len(p.lines)-1-i] }

// Add is called with each line of the editor; remember adds those that are kept.
func (*past) Add(string) {}

// remember adds a line.
func (p *past) remember(line string) {
	if line == "" || len(p.lines) > 0 && p.lines[len(p.lines)-1] == line {
		return
	}
	p.lines = append(p.lines, line)
	p.lines = p.lines[max(0, len(p.lines)-mostPast):]
}

// save writes the history. A chat without one is still a chat.
func (p *past) save() {
	if p.file == "" || os.MkdirAll(filepath.Dir(p.file), 0o700) != nil {
		return
	}
	_ = os.WriteFile(p.file, []byte(strings.Join(p.lines, "\n")+"\n"), 0o600)
}
