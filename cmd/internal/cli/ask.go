package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// turnFlags say what an input wants of its turn.
type turnFlags struct {
	policy, toolChoice string
	maxSteps           int
}

// turns adds to cmd the flags of a command whose inputs become turns.
func (f *turnFlags) turns(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.policy, "policy", string(messages.PolicyQueue),
		"`POLICY` if the agent is busy: queue (a turn of its own, later), steer (the running turn sees it before its next model call), "+
			"interrupt (cancel the running turn, then run) or reject (refuse it)")
	fs.StringVar(&f.toolChoice, "tool-choice", "",
		"`CHOICE` of tools: auto, none, or to force the use of one: required, or its name (default: the agent's; if the agent sets one, an input with another is refused)")
	fs.IntVar(&f.maxSteps, "max-steps", 0, "at most `N` model calls in this turn; more than the agent's own limit are refused")
}

// input is the input that the flags and the text make.
func (f *turnFlags) input(text string) (messages.Input, error) {
	in := messages.Input{
		Policy: messages.Policy(f.policy), Content: messages.TextContent(text),
		Options: messages.InputOptions{MaxSteps: f.maxSteps, ToolChoice: f.toolChoice},
	}
	switch {
	case !slices.Contains(messages.Policies(), in.Policy):
		return in, usage("--policy %q: write queue, steer, interrupt or reject", f.policy)
	case f.maxSteps < 0:
		return in, usage("--max-steps %d: it must be positive", f.maxSteps)
	}
	return in, nil
}

// inputFlags shape an input.
type inputFlags struct {
	turnFlags
	id, deadline, reply string
}

// inputs adds to cmd the flags of a command that sends an input.
func (f *inputFlags) inputs(cmd *cobra.Command) {
	f.turns(cmd)
	fs := cmd.Flags()
	idFlag(cmd, &f.id)
	fs.StringVar(&f.deadline, "deadline", "", "refuse the input if it is not accepted by this `TIME`: a duration such as 30s, or an RFC 3339 time")
}

// input is the input that the flags and the text make.
func (f *inputFlags) input(text string) (messages.Input, error) {
	in, err := f.turnFlags.input(text)
	in.ID, in.Reply = f.id, f.reply
	if err != nil || f.deadline == "" {
		return in, err
	}
	t, err := time.Parse(time.RFC3339, f.deadline)
	if err != nil {
		d, err := time.ParseDuration(f.deadline)
		if err != nil {
			return in, usage("--deadline %q: write a duration such as 30s, or a time such as 2026-01-02T15:04:05Z", f.deadline)
		}
		t = time.Now().Add(d)
	}
	if t = t.UTC(); !t.After(time.Now()) {
		return in, usage("--deadline %s has passed already: give a later one, or none", f.deadline)
	}
	in.Deadline = &t
	return in, nil
}

// text is what the arguments say, or standard input for -.
func (a *app) text(args []string) (string, error) {
	text := strings.Join(args, " ")
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(a.in, messages.MaxInput+1))
		if err != nil {
			return "", err
		}
		text = strings.TrimSuffix(string(b), "\n")
	}
	switch {
	case !utf8.ValidString(text):
		return "", fail("convert it to UTF-8 text first", "the input is not valid UTF-8")
	case strings.TrimSpace(text) == "":
		return "", usage("the text is empty: give it as an argument, or - to read standard input")
	case len(text) > messages.MaxInput:
		return "", fail("send it in parts, or a reference to it", "the input is larger than %d bytes", messages.MaxInput)
	}
	return text, nil
}

func (a *app) ask() *cobra.Command {
	var f inputFlags
	var later laterFlags
	cmd := &cobra.Command{
		Use: "ask AGENT TEXT... | ask AGENT -", GroupID: groupTalk, Args: cobra.MinimumNArgs(2),
		Short: "Send an input to an agent and stream its answer",
		Long: `Send an input to an agent and stream the answer to standard output. With - the text is read
from standard input. With -o json each piece of text and each event of the turn is a line of
JSON; the last line has the output and the usage. Text of child agents is in lines of type
child.text, with the child's address and the call that it works for.

The turn continues if you stop this command. If a tool needs approval, the command asks you at
the terminal. Exit code 3: the turn waits for a person. Exit code 130: Ctrl-C stopped the
command.`,
		Example: `  reprise ask assistant/main "What is 17 times 3?"
  reprise ask assistant/main --verbose - <question.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if later.any() {
				return usage("ask waits for the answer, which would come later: use `%s send` with --in, --at or --cron, and `%s events %s --follow` to see what comes of it", a.started, a.started, args[0])
			}
			return a.runAsk(cmd.Context(), f, args[0], args[1:])
		},
	}
	f.inputs(cmd)
	later.flags(cmd)
	for _, name := range laterNames {
		_ = cmd.Flags().MarkHidden(name) // it is there to be refused
	}
	cmd.Flags().BoolVarP(&a.verbose, "verbose", "v", false, "show on standard error what the agent is doing")
	return waitsFor(a.connects(cmd, 0), "the end of the turn")
}

func (a *app) runAsk(ctx context.Context, f inputFlags, agent string, words []string) error {
	agent, err := address(agent)
	if err != nil {
		return err
	}
	text, err := a.text(words)
	if err != nil {
		return err
	}
	in, err := f.input(text)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	c, within, done, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer done()
	t := &turn{app: a, client: c, agent: agent, person: a.person()}
	return t.left(ctx, t.follow(within, in))
}

// left is why the turn was left, with what continues all the same; ctx ends if the command is
// stopped.
func (t *turn) left(ctx context.Context, err error) error {
	rest, lost := fmt.Sprintf("; turn %s of %s continues", t.seen, t.agent), t.app.gone.Load() || errors.Is(err, client.ErrLost)
	switch {
	case t.seen != "":
	case t.queued:
		rest = fmt.Sprintf("; %s has accepted the input, which waits for its turn", t.agent)
	default:
		rest = fmt.Sprintf(" before %s answered; if it accepted the input, its turn continues", t.agent)
	}
	switch {
	case err == nil:
	case lost:
		return fail(t.followIt()+" when a node is back", "%v%s", client.ErrLost, rest)
	case ctx.Err() != nil:
		return stopped(t.followIt(), "stopped listening%s", rest)
	case !errors.Is(err, context.DeadlineExceeded) || t.seen == "" && !t.queued:
	case t.seen == "":
		return fail(t.followIt(), "the input did not get its turn of %s within %v; it is accepted and waits", t.agent, t.app.remote.timeout)
	default:
		return fail(t.followIt(), "turn %s of %s did not end within %v; it continues", t.seen, t.agent, t.app.remote.timeout)
	}
	return err
}

// raw decodes the data of a fact; what does not fit stays zero.
func raw[T any](data json.RawMessage) (v T) {
	_ = json.Unmarshal(data, &v)
	return v
}
