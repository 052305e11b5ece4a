package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) request() *cobra.Command {
	q := messages.Query{View: "request"}
	return a.connects(&cobra.Command{
		Use: "request AGENT [EVENT]", GroupID: groupLook, Args: cobra.RangeArgs(1, 2),
		Short: "Show the request that a model was sent",
		Long: `Show the request that a model was sent: settings, instructions, tools and items of history,
rebuilt from the log, with the changes that hooks made. EVENT is the number of an event, as
"reprise events" lists them: the model call, or a result of it, such as its answer or a tool
call. Default: the newest model call.

"matches" reports whether the rebuilt request has the hash that was recorded when it was sent.
-o json prints one object; by_hook marks what a hook added.`,
		Example: `  reprise request support/ticket-42
  reprise request support/ticket-42 12`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 1 {
				if q.At, err = a.eventNumber(args[0], args[1]); err != nil {
					return err
				}
			}
			_, err = printed(a, a.ofAgent(cmd.Context(), args[0], q), func(r projections.ModelRequest) {
				a.requestText(r, a.moment(r.At, time.DateTime))
			})
			return err
		},
	}, defaultTimeout)
}

// eventNumber reads the number of an event of an agent.
func (a *app) eventNumber(agent, text string) (messages.EventNumber, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, usage("EVENT %q: write the number of an event, such as 17; `%s events %s` lists them", text, a.started, agent)
	}
	return messages.EventNumber(n), nil
}

// requestIn returns the text of a request, with its time in a zone.
func requestIn(zone *time.Location) func(projections.ModelRequest) string {
	return func(r projections.ModelRequest) string {
		var b strings.Builder
		(&app{out: &b}).requestText(r, r.At.In(zone).Format(time.DateTime+" MST"))
		return b.String()
	}
}

// requestText prints a request of some time for a person.
func (a *app) requestText(r projections.ModelRequest, at string) {
	where := fmt.Sprintf("turn %s, step %d", r.Turn, r.Step)
	if r.Summary {
		where = "a summary of the history"
	}
	a.headline("request", "%s, attempt %d, call %s, event %d, %s", where, r.Attempt, r.Call, r.N, at)
	model := r.Model
	if r.SentAs != "" {
		model += ", sent as " + r.SentAs
	}
	a.headline("model", "%s%s", model, byHook(r, "model"))
	a.changeable(r, "tool choice", "tool_choice", r.ToolChoice)
	a.changeable(r, "settings", "settings", strings.TrimPrefix(string(r.Settings), "{}"))
	a.hooksText(r)
	if r.Instructions != "" || byHook(r, "instructions") != "" {
		a.headline("instructions", "%s", byHook(r, "instructions"))
		a.paragraph(r.Instructions)
	}
	for _, t := range r.Tools {
		a.toolText(t)
	}
	if byHook(r, "tools") != "" {
		a.headline("tools", "%d%s", len(r.Tools), byHook(r, "tools"))
	}
	a.itemsText(r)
}

// changeable prints a part of a request, unless it is empty and no hook has made it so.
func (a *app) changeable(r projections.ModelRequest, title, part, text string) {
	if mark := byHook(r, part); text != "" || mark != "" {
		a.headline(title, "%s%s", text, mark)
	}
}

// hooksText prints which hooks had to do with a request, and whether it is what was sent.
func (a *app) hooksText(r projections.ModelRequest) {
	for _, h := range r.Hooks {
		a.headline("hook", "%s has changed the request%s", h.Hook, because(h.Reason))
	}
	if len(r.Around) > 0 {
		a.headline("around", "%s: may have had the call answered again, elsewhere or not at all", strings.Join(r.Around, ", "))
	}
	matches := "yes, the hash that was recorded when it was sent"
	if !r.Matches {
		matches = "no: " + r.Why
	}
	a.headline("matches", "%s", matches)
}

// byHook marks a part of a request that hooks have changed.
func byHook(r projections.ModelRequest, part string) string {
	for _, name := range r.Changed {
		if name == part {
			return " [changed by a hook]"
		}
	}
	return ""
}

// toolText prints a tool that a model may call.
func (a *app) toolText(t projections.ModelTool) {
	mark := ""
	if t.ByHook {
		mark = " [by a hook]"
	}
	a.headline("tool", "%s%s", t.Name, mark)
	var parameters bytes.Buffer
	if json.Compact(&parameters, t.Parameters) != nil {
		parameters.Write(t.Parameters)
	}
	a.paragraph(strings.TrimSpace(t.Description + "\n" + parameters.String()))
}

// itemsText prints the items of a request, as history prints them.
func (a *app) itemsText(r projections.ModelRequest) {
	text := strconv.Itoa(len(r.Items))
	if r.LeftOut > 0 {
		text += fmt.Sprintf(", %d of the history are left out", r.LeftOut)
	}
	a.headline("items", "%s%s", text, byHook(r, "items"))
	for _, item := range r.Items {
		if item.ByHook {
			a.itemAs("hook", item.HistoryItem)
			continue
		}
		a.item(item.HistoryItem)
	}
}
