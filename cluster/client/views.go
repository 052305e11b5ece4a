package client

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// ViewOption narrows a view.
type ViewOption func(*view)

// view is what is asked for.
type view struct {
	messages.Query
	lacks []func(Lacks)
}

// At returns a view of an agent as of event n. 0: the newest.
func At(n messages.EventNumber) ViewOption {
	return func(v *view) { v.At = n }
}

// Only narrows a view to what q selects. Its View is ignored, and At as well if it is zero. A node
// refuses a field that the view does not take.
func Only(q messages.Query) ViewOption {
	return func(v *view) {
		if q.View = v.View; q.At == 0 {
			q.At = v.At
		}
		v.Query = q
	}
}

// Lacking calls lacks with what is missing from a view of a tenant. Without it, a view that does not
// cover all partitions yields an error after its lines.
func Lacking(lacks func(Lacks)) ViewOption {
	return func(v *view) { v.lacks = append(v.lacks, lacks) }
}

// Events yields the events of an agent, oldest first. With Follow in [Only] it waits for more
// until ctx ends.
func (c *Client) Events(ctx context.Context, agent string, o ...ViewOption) iter.Seq2[projections.EventJSON, error] {
	return viewed[projections.EventJSON](ctx, c, agent, messages.Query{View: "events"}, o)
}

// Frames yields the frames of an agent, oldest first, and the definitions that they name, each before
// the first frame that does. With [At] the last one is the frame that holds that event.
func (c *Client) Frames(ctx context.Context, agent string, o ...ViewOption) iter.Seq2[messages.FrameLine, error] {
	return viewed[messages.FrameLine](ctx, c, agent, messages.Query{View: "frames"}, o)
}

// Replay yields the events of an agent with what each changed.
func (c *Client) Replay(ctx context.Context, agent string, o ...ViewOption) iter.Seq2[projections.Change, error] {
	return viewed[projections.Change](ctx, c, agent, messages.Query{View: "replay"}, o)
}

// Timeline yields what happened to an agent, a row for each input, turn, model call, tool call and
// so on. With Follow in [Only] it continues with the rows that change, each one whole, until ctx
// ends.
func (c *Client) Timeline(ctx context.Context, agent string, o ...ViewOption) iter.Seq2[projections.Row, error] {
	return viewed[projections.Row](ctx, c, agent, messages.Query{View: "timeline"}, o)
}

// History yields what a model sees of an agent, oldest first.
func (c *Client) History(ctx context.Context, agent string, o ...ViewOption) iter.Seq2[projections.HistoryItem, error] {
	return viewed[projections.HistoryItem](ctx, c, agent, messages.Query{View: "history"}, o)
}

// Turns yields the turns of an agent with their questions and answers, oldest first.
func (c *Client) Turns(ctx context.Context, agent string, o ...ViewOption) iter.Seq2[projections.TurnLine, error] {
	whole := func(v *view) { v.Whole = true }
	return viewed[projections.TurnLine](ctx, c, agent, messages.Query{View: "turns"}, append(o[:len(o):len(o)], whole))
}

// Turn returns the details of one turn. messages.NotFound: the agent has no such turn.
func (c *Client) Turn(ctx context.Context, agent string, turn messages.TurnID, o ...ViewOption) (projections.TurnDetail, error) {
	this := func(v *view) { v.Turn = turn }
	return one(viewed[projections.TurnDetail](ctx, c, agent, messages.Query{View: "turn"}, append(o[:len(o):len(o)], this)))
}

// Request returns what a model call of an agent was sent: the one that event n belongs to, or with 0
// the newest. messages.NotFound: the event belongs to no model call.
func (c *Client) Request(ctx context.Context, agent string, n messages.EventNumber) (projections.ModelRequest, error) {
	return one(viewed[projections.ModelRequest](ctx, c, agent, messages.Query{View: "request", At: n}, nil))
}

// Why returns why event n of an agent happened: its causes, also in other agents, and equal calls.
// messages.NotFound: the agent has no such event.
func (c *Client) Why(ctx context.Context, agent string, n messages.EventNumber) (projections.Why, error) {
	return one(viewed[projections.Why](ctx, c, agent, messages.Query{View: "why", At: n}, nil))
}

// Show returns what an agent is doing, its queue, and what it waits for: calls that a person must
// approve, and calls whose outcome is unknown.
func (c *Client) Show(ctx context.Context, agent string, o ...ViewOption) (projections.AgentStatus, error) {
	return one(viewed[projections.AgentStatus](ctx, c, agent, messages.Query{View: "show"}, o))
}

// State returns the agent's own data, a JSON object with sorted keys unless it was replaced by
// another value.
func (c *Client) State(ctx context.Context, agent string, o ...ViewOption) (json.RawMessage, error) {
	return one(viewed[json.RawMessage](ctx, c, agent, messages.Query{View: "state"}, o))
}

// Children yields the agents that an agent has called, oldest call first.
func (c *Client) Children(ctx context.Context, agent string, o ...ViewOption) iter.Seq2[projections.Child, error] {
	return viewed[projections.Child](ctx, c, agent, messages.Query{View: "children"}, o)
}

// Usage yields what the model calls of an agent used: a line for each call, turn and model, last
// the total.
func (c *Client) Usage(ctx context.Context, agent string, o ...ViewOption) iter.Seq2[projections.UsageLine, error] {
	return viewed[projections.UsageLine](ctx, c, agent, messages.Query{View: "usage"}, o)
}

// UsageOf yields what the model calls of a tenant's agents used, by model unless By in [Only]
// names something else; last the total.
func (c *Client) UsageOf(ctx context.Context, tenant string, o ...ViewOption) iter.Seq2[projections.UsageSum, error] {
	return viewed[projections.UsageSum](ctx, c, tenant, messages.Query{View: "usage"}, o)
}

// Effects yields the tool calls of one agent, if of is an address such as support/ticket-42, else
// of the whole tenant that it names, oldest first.
func (c *Client) Effects(ctx context.Context, of string, o ...ViewOption) iter.Seq2[projections.Effect, error] {
	return viewed[projections.Effect](ctx, c, of, messages.Query{View: "effects"}, o)
}

// Find yields the events of a tenant's agents that hold a text, newest first: words, phrases in
// double quotes, an id or key, or the beginning of one. Other filters are given by [Only], with
// Text in them.
func (c *Client) Find(ctx context.Context, tenant, text string, o ...ViewOption) iter.Seq2[projections.Found, error] {
	this := func(v *view) { v.Text = text }
	return viewed[projections.Found](ctx, c, tenant, messages.Query{View: "find"}, append(o[:len(o):len(o)], this))
}

// Approvals yields the calls that wait for a person's approval, of an agent or a tenant as for
// [Client.Effects]. Calls whose outcome is unknown are not among them; see [Client.Show].
func (c *Client) Approvals(ctx context.Context, of string, o ...ViewOption) iter.Seq2[messages.Approval, error] {
	return viewed[messages.Approval](ctx, c, of, messages.Query{View: "approvals"}, o)
}

// Remembered yields the decisions that apply to an agent's later calls.
func (c *Client) Remembered(ctx context.Context, agent string, o ...ViewOption) iter.Seq2[messages.Remembered, error] {
	remembered := func(v *view) { v.Remembered = true }
	return viewed[messages.Remembered](ctx, c, agent, messages.Query{View: "approvals"}, append(o[:len(o):len(o)], remembered))
}

// Timers yields the scheduled inputs of an agent, the next one first.
func (c *Client) Timers(ctx context.Context, agent string, o ...ViewOption) iter.Seq2[messages.Timer, error] {
	return viewed[messages.Timer](ctx, c, agent, messages.Query{View: "timers"}, o)
}

// Forks yields the forks of an agent, oldest first.
func (c *Client) Forks(ctx context.Context, agent string, o ...ViewOption) iter.Seq2[projections.Fork, error] {
	return viewed[projections.Fork](ctx, c, agent, messages.Query{View: "forks"}, o)
}

// Inventory returns what is stored of an agent, all of which a delete would remove.
func (c *Client) Inventory(ctx context.Context, agent string) (messages.Inventory, error) {
	return one(viewed[messages.Inventory](ctx, c, agent, messages.Query{View: "inventory"}, nil))
}

// Agents yields the agents of a tenant, in the order of their addresses.
func (c *Client) Agents(ctx context.Context, tenant string, o ...ViewOption) iter.Seq2[projections.Agent, error] {
	return viewed[projections.Agent](ctx, c, tenant, messages.Query{View: "agents"}, o)
}

// DeadLetters yields the inputs and commands of a tenant that could not be applied, oldest first.
func (c *Client) DeadLetters(ctx context.Context, tenant string, o ...ViewOption) iter.Seq2[messages.DeadLetter, error] {
	return viewed[messages.DeadLetter](ctx, c, tenant, messages.Query{View: "dlq"}, o)
}

// viewed yields the lines of a view as T, of an agent if of is an address, else of a tenant.
func viewed[T any](ctx context.Context, c *Client, of string, q messages.Query, options []ViewOption) iter.Seq2[T, error] {
	v := view{Query: q}
	for _, o := range options {
		o(&v)
	}
	lines := c.QueryTenant
	if strings.Contains(of, "/") {
		lines = func(ctx context.Context, agent string, q messages.Query, _ ...func(Lacks)) iter.Seq2[json.RawMessage, error] {
			return c.Query(ctx, agent, q)
		}
	}
	if len(v.lacks) > 0 {
		return decoded[T](lines(ctx, of, v.Query, v.lacks...))
	}
	return func(yield func(T, error) bool) {
		uncovered := make(map[messages.Partition]messages.Uncovered)
		note := func(l Lacks) {
			for _, u := range l.Uncovered {
				uncovered[u.Partition] = u
			}
		}
		for row, err := range decoded[T](lines(ctx, of, v.Query, note)) {
			if !yield(row, err) || err != nil {
				return
			}
		}
		if len(uncovered) > 0 {
			first := uncovered[slices.Min(slices.Collect(maps.Keys(uncovered)))]
			var none T
			yield(none, messages.Refuse(messages.Unavailable, "not everything is shown of %d partitions, the first: %v; ask again, or pass client.Lacking to take what is there", len(uncovered), first))
		}
	}
}

// decoded yields lines as T.
func decoded[T any](lines iter.Seq2[json.RawMessage, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for line, err := range lines {
			var v T
			if err == nil {
				err = json.Unmarshal(line, &v)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// one returns the line of a view that has one. An error that comes behind it, such as that
// some of the agent's log is missing, is returned with it.
func one[T any](lines iter.Seq2[T, error]) (v T, err error) {
	err = messages.Refuse(messages.Internal, "the view is empty, it should have one line")
	for line, failed := range lines {
		if failed != nil {
			return v, failed
		}
		v, err = line, nil
	}
	return v, err
}
