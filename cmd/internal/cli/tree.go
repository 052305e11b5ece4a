package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// maxTree is how many agents a tree shows; what is below the last one is left
// out, and said so. treeAtOnce is how many are asked at the same time.
const maxTree, treeAtOnce = 5000, 8

func (a *app) tree() *cobra.Command {
	var at messages.EventNumber
	cmd := &cobra.Command{
		Use: "tree AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short: "Show an agent and its children",
		Long: `Show an agent, the child agents that its tool calls created, their children, and so on: what
each is doing, what its own model calls used and cost, and the sum. With -o json each agent is
one line, a parent before its children, with depth and parent; the last line is the sum.

With --at it shows what AGENT had recorded at that event; the logs of children are not read.`,
		Example: `  reprise tree team/main`,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runTree(cmd.Context(), args[0], at) },
	}
	cmd.Flags().Uint64Var((*uint64)(&at), "at", 0, "show it as of this `EVENT` of AGENT")
	return a.connects(cmd, defaultTimeout)
}

// treeLine is an agent of a tree. Its names are promises.
type treeLine struct {
	Type   string               `json:"type"` // agent
	Agent  messages.AgentID     `json:"agent"`
	Parent string               `json:"parent,omitempty"`
	Depth  int                  `json:"depth"`
	Call   messages.CallID      `json:"call,omitempty"` // of the parent's, that it is
	Tool   string               `json:"tool,omitempty"`
	Status string               `json:"status,omitempty"` // as its parent knows it
	Phase  messages.AgentPhase  `json:"phase,omitempty"`
	Turn   messages.TurnID      `json:"turn,omitempty"`
	Events messages.EventNumber `json:"events,omitempty"`
	// Waiting are the agent's own calls that a person must settle.
	Waiting []projections.Waiting `json:"waiting,omitempty"`
	// Usage and Cost are of its own model calls.
	Usage messages.Usage `json:"usage"`
	Cost  messages.Cost  `json:"cost_nanos,omitempty"`
	// Missing says why the agent itself could not be asked.
	Missing string `json:"missing,omitempty"`
}

// treeSum is the last line of a tree.
type treeSum struct {
	Type   string         `json:"type"` // total
	Agents int            `json:"agents"`
	Usage  messages.Usage `json:"usage"`
	Cost   messages.Cost  `json:"cost_nanos,omitempty"`
	// LeftOut reports whether there are more agents than are shown.
	LeftOut bool `json:"left_out,omitempty"`
}

// walk goes through a tree, a parent before its children.
type walk struct {
	client *client.Client
	at     messages.EventNumber
	give   func(treeLine) error
	sum    treeSum
}

func (a *app) runTree(ctx context.Context, agent string, at messages.EventNumber) error {
	root, err := messages.ParseAgentID(agent)
	if err != nil {
		return usage("%v", err)
	}
	c, p, closes, err := a.reader(ctx, false)
	if err != nil {
		return err
	}
	defer closes()
	rows := [][]string{strings.Split("AGENT\tPHASE\tTURN\tINPUT\tOUTPUT\tCOST\tWAITS FOR", "\t")}
	w := &walk{client: c, at: at, sum: treeSum{Type: "total"}, give: func(line treeLine) error {
		defer p.wait()
		if a.json() {
			return a.object(line)
		}
		rows = append(rows, strings.Split(treeText(line), "\t"))
		return nil
	}}
	err = w.visits(p, []treeLine{{Type: "agent", Agent: root}})
	switch {
	case err != nil:
	case a.json():
		err = a.object(w.sum)
	default:
		sum := fmt.Sprintf("%s\t\t\t%d\t%d\t%s\t", english.Plural(w.sum.Agents, "agent", ""), w.sum.Usage.Input, w.sum.Usage.Output, w.sum.Cost)
		rows = append(rows, strings.Split(sum, "\t"))
	}
	if len(rows) > 1 {
		a.columns(rows)
	}
	if err == nil && w.sum.LeftOut {
		a.note("there are more agents than the %d shown; ask for the tree of one of them", maxTree)
	}
	return err
}

func treeText(l treeLine) string {
	phase := string(l.Phase)
	if l.Status != "" && l.Status != phase {
		phase = strings.TrimSpace(phase + " (" + l.Status + ")")
	}
	waits := each(l.Waiting, waitText)
	if l.Missing != "" {
		waits = append(waits, l.Missing)
	}
	return fmt.Sprintf("%s%s\t%s\t%s\t%d\t%d\t%s\t%s", strings.Repeat("  ", l.Depth), l.Agent, phase, projections.Printable(string(l.Turn), 64),
		l.Usage.Input, l.Usage.Output, l.Cost, projections.Printable(strings.Join(waits, "; "), 160))
}

// looked is an agent that was asked.
type looked struct {
	line     treeLine
	children []projections.Child
	err      error
}

// visits calls w.give with agents and those below them, in order; the next ones are asked meanwhile.
func (w *walk) visits(ctx context.Context, lines []treeLine) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var asked []chan looked
	for len(lines)+len(asked) > 0 {
		if w.sum.Agents >= maxTree {
			w.sum.LeftOut = true
			return nil
		}
		for len(lines) > 0 && len(asked) < treeAtOnce {
			line, answer := lines[0], make(chan looked, 1)
			lines, asked = lines[1:], append(asked, answer)
			go func() {
				children, err := w.look(ctx, &line)
				answer <- looked{line, children, err}
			}()
		}
		if err := w.visit(ctx, <-asked[0]); err != nil {
			return err
		}
		asked = asked[1:]
	}
	return nil
}

// visit calls w.give with an agent and those below it. The root must exist; a child need not have
// begun yet.
func (w *walk) visit(ctx context.Context, l looked) error {
	line, err := l.line, l.err
	var refused *messages.Error
	if line.Depth > 0 && errors.As(err, &refused) && !refused.Temporary() {
		line.Missing, err = refused.Message, nil
	}
	if err != nil {
		return err
	}
	w.sum.Agents++
	w.sum.Usage, w.sum.Cost = w.sum.Usage.Add(line.Usage), w.sum.Cost.Plus(line.Cost)
	if err := w.give(line); err != nil {
		return err
	}
	var deeper []treeLine
	for _, c := range l.children {
		below := treeLine{Type: "agent", Agent: c.Agent, Parent: line.Agent.String(), Depth: line.Depth + 1, Call: c.Call, Tool: c.Tool, Status: c.Status}
		if w.at != 0 { // as its parent knew it
			below.Usage, below.Cost = c.Usage, c.Cost
			w.sum.Agents++
			w.sum.Usage, w.sum.Cost = w.sum.Usage.Add(c.Usage), w.sum.Cost.Plus(c.Cost)
			if err := w.give(below); err != nil {
				return err
			}
			continue
		}
		if line.Depth > messages.MaxCallers {
			w.sum.LeftOut = true
			continue
		}
		deeper = append(deeper, below)
	}
	return w.visits(ctx, deeper)
}

// look asks an agent what it does, what it has used, and which agents it asks.
func (w *walk) look(ctx context.Context, line *treeLine) (children []projections.Child, err error) {
	agent, at := line.Agent.String(), client.At(w.at)
	s, err := w.client.Show(ctx, agent, at)
	line.Phase, line.Turn, line.Events = s.Phase, s.Turn, s.Events
	for _, own := range s.Waiting {
		if own.Agent == "" || w.at != 0 {
			line.Waiting = append(line.Waiting, own)
		}
	}
	if err != nil {
		return nil, err
	}
	for u, err := range w.client.Usage(ctx, agent, at) {
		if err != nil {
			return nil, err
		}
		if u.Type == "total" {
			line.Usage, line.Cost = u.Usage, u.Cost
		}
	}
	for child, err := range w.client.Children(ctx, agent, at) {
		if err != nil {
			return children, err
		}
		children = append(children, child)
	}
	return children, nil
}
