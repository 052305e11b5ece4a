package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

func (a *app) chat() *cobra.Command {
	var f turnFlags
	cmd := &cobra.Command{
		Use: "chat AGENT", GroupID: groupTalk, Args: cobra.ExactArgs(1),
		Short: "Talk with an agent in a terminal",
		Long: `Talk with an agent in a terminal. Ctrl-C interrupts the running turn, Ctrl-D ends the chat, and
/help lists more. Text that you paste is one message with all its lines. Alt-Enter, or a
backslash at the end of a line, begins another line of the message. Without a terminal, each
line of standard input is a message.

What you type is kept for the next chat in the file reprise/chat_history of your configuration
folder.`,
		Example: `  reprise chat assistant/main`,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runChat(cmd.Context(), f, args[0]) },
	}
	f.turns(cmd)
	cmd.Flags().BoolVarP(&a.verbose, "verbose", "v", false, "show what the agent is doing")
	return waitsFor(a.connects(cmd, 0), "the end of each turn")
}

// chat is one conversation.
type chat struct {
	app    *app
	client *client.Client
	agent  string
	flags  turnFlags
	person asker // nil: there is none
}

// lineReader returns what the user says; its error is io.EOF at the end.
type lineReader interface{ next() (string, error) }

func (a *app) runChat(ctx context.Context, f turnFlags, agent string) error {
	agent, err := address(agent)
	if err != nil {
		return err
	}
	if _, err := f.input(""); err != nil {
		return err
	}
	c, ctx, done, err := a.connected(ctx)
	if err != nil {
		return err
	}
	defer done()
	talk := &chat{app: a, client: c, agent: agent, flags: f}
	if !isTerminal(a.in) || !isTerminal(a.out) {
		return talk.run(ctx, newPlainLines(a.in))
	}
	a.note("Ctrl-C interrupts a turn, Ctrl-D ends the chat, /help shows more")
	lines := a.newTerminalLines(agent + "> ")
	defer lines.close()
	talk.person = lines.person()
	err = talk.run(ctx, lines)
	if f := new(failure); errors.As(err, &f) && f.what == "" {
		return nil // the person has seen it
	}
	return err
}

// run talks until the lines end. Its error is that of the last turn that failed.
func (c *chat) run(ctx context.Context, lines lineReader) (failed error) {
	for {
		line, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return failed
		case err != nil:
			return err
		}
		quit, err := c.line(ctx, strings.TrimSpace(line))
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			failed = silent(c.app.report(err))
		}
		if quit {
			return failed
		}
	}
}

const chatHelp = `  /history    what the model sees of the past
  /state      the state that the agent keeps
  /interrupt  cancel the running turn
  /quit       end the chat

  Alt-Enter or \ at the end of a line begins another line of the same message;
  what is pasted is one message.
`

// slash is a line that looks like a command; a path or a sentence does not.
var slash = regexp.MustCompile(`^/[a-z]+$`)

func (c *chat) line(ctx context.Context, line string) (quit bool, err error) {
	switch line {
	case "":
		return false, nil
	case "/quit", "/exit":
		return true, nil
	case "/help":
		c.app.printf("%s", chatHelp)
		return false, nil
	case "/history":
		return false, c.look(ctx, func(ctx context.Context) error {
			return c.app.runHistory(ctx, c.agent, messages.Query{View: "history"})
		})
	case "/state":
		return false, c.look(ctx, func(ctx context.Context) error {
			return c.app.runState(ctx, c.agent, messages.Query{View: "state"})
		})
	case "/interrupt":
		return false, c.look(ctx, c.interrupt)
	}
	if slash.MatchString(line) {
		return false, fail("/help lists the commands", "there is no %s here", line)
	}
	return false, c.turn(ctx, line)
}

// look runs one of the chat's own commands, which Ctrl-C ends.
func (c *chat) look(ctx context.Context, run func(context.Context) error) error {
	looking, stop := interruptible(ctx)
	defer stop()
	err := run(looking)
	if looking.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// turn sends a line and shows the answer. The first Ctrl-C interrupts the
// turn, a second one stops listening to it.
func (c *chat) turn(ctx context.Context, line string) error {
	text, err := c.app.text([]string{line})
	if err != nil {
		return err
	}
	in, err := c.flags.input(text)
	if err != nil {
		return err
	}
	ctx, end := c.app.limited(ctx)
	defer end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	var interrupted atomic.Bool
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		interrupted.Store(true)
		if err := c.interrupt(ctx); err != nil && ctx.Err() == nil {
			c.app.report(err)
		}
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	t := &turn{app: c.app, client: c.client, agent: c.agent, person: c.person}
	err = t.follow(ctx, in)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fail(t.followIt(), "the turn did not end within %v; it continues", c.app.remote.timeout)
	case ctx.Err() != nil:
		return fail(t.followIt(), "stopped listening; the turn continues")
	case interrupted.Load() && t.aborted:
		c.app.note("interrupted")
		return nil
	}
	return err
}

func (c *chat) interrupt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heeding)
	defer cancel()
	answer, err := c.client.Do(ctx, c.agent, messages.Interrupt{Reason: "interrupted in chat"})
	if err == nil && answer.Noop != "" {
		c.app.note("nothing to interrupt: %s", answer.Noop)
	}
	return err
}

// plainLines reads lines that are not edited.
type plainLines struct{ scanner *bufio.Scanner }

func newPlainLines(in io.Reader) plainLines {
	s := bufio.NewScanner(in)
	s.Buffer(nil, messages.MaxInput)
	return plainLines{s}
}

func (l plainLines) next() (string, error) {
	if l.scanner.Scan() {
		return l.scanner.Text(), nil
	}
	if err := l.scanner.Err(); err != nil {
		return "", err
	}
	return "", io.EOF
}
