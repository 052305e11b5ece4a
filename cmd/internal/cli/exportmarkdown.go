package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/reprise-dev/reprise/cmd/internal/replay"
	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// markdownExport writes an agent as a page for people: one section for each turn. All that people,
// models and tools have written is fenced, so that it is shown as it is.
type markdownExport struct {
	gathered
	to *bufio.Writer

	outputs  map[turnCall]string // whole results
	children map[turnCall]projections.Child
	named    map[string]int // first frame that names an input
}

// Close writes the page.
func (x *markdownExport) Close([]messages.Digest, map[string]int) (export.End, error) {
	agent, err := messages.ParseAgentID(x.head.Agent)
	if err != nil {
		return x.end, err
	}
	x.read()
	var turns projections.Turns
	for _, f := range x.frames {
		projections.Fold(f, 0, &turns)
	}
	x.line("# %s\n", code(agent.String()))
	x.line("%d events, the newest number %d. Written %s, times in UTC.", x.end.Events, x.end.Last, x.head.At.UTC().Format(time.DateTime))
	if len(x.head.Redacted) > 0 {
		x.line("Redacted by the rules %s.", code(strings.Join(x.head.Redacted, ", ")))
	}
	if d := x.definition(); d.Instructions != "" {
		x.line("\n## Instructions\n")
		x.fence("", d.Instructions)
	}
	for _, t := range turns.List() {
		x.turn(agent, t)
	}
	x.line("")
	return x.end, x.to.Flush()
}

// read gathers what the turns refer to.
func (x *markdownExport) read() {
	x.outputs, x.children, x.named = make(map[turnCall]string), make(map[turnCall]projections.Child), make(map[string]int)
	var children projections.Children
	for i, f := range x.frames {
		projections.Fold(f, 0, &children)
		for _, ev := range f.Events {
			for _, id := range messages.InputsOf(ev) {
				if _, is := x.named[id]; !is {
					x.named[id] = i
				}
			}
			if messages.Is(ev.EventType(), messages.EndsTool) {
				x.outputs[turnCall{messages.TurnOf(ev), messages.CallOf(ev)}] = outputOf(ev)
			}
		}
	}
	for _, c := range children.List() {
		x.children[turnCall{c.Turn, c.Call}] = c
	}
}

// outputOf returns the output of an event about a call; empty if it has none.
func outputOf(ev messages.Event) string {
	var fields struct{ Output string }
	if data, err := json.Marshal(ev); err == nil {
		_ = json.Unmarshal(data, &fields) // an event without one has none
	}
	return fields.Output
}

// detail folds the frames from where a turn's inputs are first named to its end.
func (x *markdownExport) detail(agent messages.AgentID, t projections.Turn) projections.TurnDetail {
	first := sort.Search(len(x.frames), func(i int) bool { return x.frames[i].Last() >= t.Started })
	for _, id := range t.Inputs {
		if i, is := x.named[id]; is {
			first = min(first, i)
		}
	}
	fold := projections.TurnDetails{ID: t.ID}
	for _, f := range x.frames[first:] {
		if projections.Fold(f, 0, &fold); t.Ended != 0 && f.Last() >= t.Ended {
			break
		}
	}
	d, _ := fold.Of(agent)
	return d
}

func (x *markdownExport) turn(agent messages.AgentID, t projections.Turn) {
	d := x.detail(agent, t)
	x.line("\n## Turn %s: %s\n", code(string(d.ID)), d.Phase)
	about := fmt.Sprintf("Event %d, %s. %s, %s", d.Started, d.StartedAt.UTC().Format(time.DateTime), english.Plural(d.Steps, "step", ""), costText(d.Usage, d.Cost))
	if !d.EndedAt.IsZero() {
		about += ", " + replay.Took(d.StartedAt, d.EndedAt)
	}
	x.line("%s.", about)
	if reason := cmp.Or(string(d.Kind), d.Reason, d.Finish, d.By); reason != "" {
		x.line("\nReason: %s", code(reason+because(d.Message)))
	}
	if d.Continues != "" {
		x.line("\nContinues turn %s.", code(string(d.Continues)))
	}
	for _, in := range d.Asked {
		x.line("\n### Input %s%s\n", code(in.ID), codedPerson(in.Person))
		x.fence("", projections.ContentText(in.Content))
	}
	said := false
	for _, s := range d.Done {
		x.step(s)
		for _, item := range s.Items {
			said = said || projections.ContentText(item.Content) == d.Output
		}
	}
	if d.Output != "" && !said { // it is a tool's or a hook's
		x.line("\n### Answer\n")
		x.fence("", d.Output)
	}
	for _, p := range d.Pauses {
		until := "it still waits"
		if !p.Until.IsZero() {
			until = "it waited " + replay.Took(p.At, p.Until) + codedPerson(p.Person)
		}
		x.line("\nPaused by %s at event %d: %s.", code(p.Reason), p.N, until)
	}
}

// step writes what a model said and asked for.
func (x *markdownExport) step(s projections.TurnStep) {
	for _, m := range s.Models {
		if m.Failed != "" {
			x.line("\nThe call of %s failed: %s", code(m.Model), code(m.Failed+because(m.Message)))
		}
	}
	for _, item := range s.Items {
		text := cmp.Or(projections.ContentText(item.Content), string(item.Raw))
		if text != "" {
			x.line("\n### %s, step %d\n", itemTitle(item), s.Step)
			x.fence("", text)
		}
	}
	for _, c := range s.Tools {
		x.call(c)
	}
}

// itemTitle is what an item of a model's answer is.
func itemTitle(item messages.Item) string {
	if item.Type == messages.ItemMessage {
		return "Model"
	}
	return "Model, " + code(string(item.Type))
}

func (x *markdownExport) call(c projections.Effect) {
	x.line("\n### Call %s of %s\n", code(string(c.ID)), code(c.Tool))
	x.fence("json", c.Arguments)
	outcome := string(c.Outcome)
	if c.Kind != "" {
		outcome += " (" + string(c.Kind) + ")"
	}
	if c.Dry {
		outcome += ", dry"
	}
	if c.Approval != "" {
		outcome += ", " + c.Approval + " (" + string(c.ApprovedBy) + ")"
	}
	if c.Attempt > 1 {
		outcome += fmt.Sprintf(", %d attempts", c.Attempt)
	}
	x.line("\nOutcome: %s%s", outcome, codedPerson(c.Person))
	if child, is := x.children[turnCall{c.Turn, c.ID}]; is {
		x.line("\nIt is the agent %s.", code(child.Agent.String()))
	}
	if text := cmp.Or(x.outputs[turnCall{c.Turn, c.ID}], c.Output, c.Reason); text != "" {
		x.line("")
		x.fence("", text)
	}
}

func (x *markdownExport) line(format string, args ...any) {
	_, _ = fmt.Fprintf(x.to, format+"\n", args...)
} // Flush has its error

// fence writes text between two fences that are longer than any run of backticks in it.
func (x *markdownExport) fence(language, text string) {
	text = safe(text)
	marks := strings.Repeat("`", max(3, longestRun(text)+1))
	x.line("%s%s\n%s\n%s", marks, language, strings.TrimSuffix(text, "\n"), marks)
}

// code is a short text in a line, shown as it is.
func code(text string) string {
	text = projections.Printable(text, 400)
	marks := strings.Repeat("`", longestRun(text)+1)
	if len(marks) > 1 || strings.HasPrefix(text, " ") || strings.HasSuffix(text, " ") || text == "" {
		text = " " + text + " " // is left out where it is shown
	}
	return marks + text + marks
}

// codedPerson is a person who did something; empty if no one is named.
func codedPerson(p *messages.Person) string {
	if p == nil {
		return ""
	}
	return ", by " + code(replay.Person(p))
}

// longestRun is the length of the longest run of backticks.
func longestRun(text string) (longest int) {
	run := 0
	for _, r := range text {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

func newMarkdown(w io.Writer, head export.Head) *markdownExport {
	return &markdownExport{gathered: newGathered(head), to: bufio.NewWriter(w)}
}
