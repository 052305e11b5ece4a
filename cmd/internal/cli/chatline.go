package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/peterh/liner"
)

// terminalLines reads lines that the user edits, with a history in a file.
type terminalLines struct {
	state  *liner.State
	prompt string
	file   string
}

func newTerminalLines(prompt string) *terminalLines {
	l := &terminalLines{state: liner.NewLiner(), prompt: prompt}
	l.state.SetCtrlCAborts(true)
	if dir, err := os.UserConfigDir(); err == nil {
		l.file = filepath.Join(dir, "reprise", "chat_history")
	}
	if f, err := os.Open(l.file); err == nil {
		_, _ = l.state.ReadHistory(f) // a chat without its history is still a chat
		_ = f.Close()
	}
	l.restoreOnTerm()
	return l
}

// restoreOnTerm gives the terminal back before SIGTERM ends the process.
func (l *terminalLines) restoreOnTerm() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		_ = l.state.Close()
		os.Exit(exitFailed)
	}()
}

// next is the next line. Ctrl-C at the prompt clears it.
func (l *terminalLines) next() (string, error) {
	for {
		line, err := l.state.Prompt(l.prompt)
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			continue
		case err != nil:
			return "", io.EOF
		}
		if line != "" {
			l.state.AppendHistory(line)
		}
		return line, nil
	}
}

// ask is one line that is not kept in the history. The first lines of a prompt
// of several are printed above it. Ctrl-C and Ctrl-D are no answer, nor is what
// was typed before: lines that are here already stay for next.
func (l *terminalLines) ask(_ context.Context, prompt string) (string, error) {
	state := liner.NewLiner()
	defer func() { _ = state.Close() }()
	state.SetCtrlCAborts(true)
	discardTyped(os.Stdin)
	if i := strings.LastIndexByte(prompt, '\n'); i >= 0 {
		fmt.Println(prompt[:i])
		prompt = prompt[i+1:]
	}
	line, err := state.Prompt(prompt)
	if err != nil {
		return "", io.EOF
	}
	return line, nil
}

// close saves the history and gives the terminal back.
func (l *terminalLines) close() {
	defer func() { _ = l.state.Close() }()
	if l.file == "" || os.MkdirAll(filepath.Dir(l.file), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(l.file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return
	}
	_, _ = l.state.WriteHistory(f)
	_ = f.Close()
}
