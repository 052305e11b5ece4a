package actors

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
)

// Compaction is when and how the history that a model sees is made shorter. The
// log keeps everything. The zero value does so when a person asks for it, and with the older half
// where a model has refused two turns in a row, the newest one because its request was too long.
type Compaction struct {
	// AtTokens is how large a model call may be expected to be, by the size of its
	// text: before a larger one the history is compacted, if that takes away an
	// eighth of it. Zero: as large as it is.
	AtTokens int `json:"at_tokens,omitempty"`
	// Keep is how many of the newest items stay, at least, unless a model refuses a request
	// with so many for its length. Default 20.
	Keep int `json:"keep,omitempty"`
	// How is messages.CompactSummary, the default: a model sums up what is left out; or
	// messages.CompactWindow: a line stands for it.
	How string `json:"how,omitempty"`
	// Model is asked for summaries, as provider/model. Default: the agent's.
	Model string `json:"model,omitempty"`
	// Instructions are those of that model. Default: SummaryInstructions.
	Instructions string `json:"instructions,omitempty"`
}

// SummaryInstructions are the instructions of a model that makes a summary.
const SummaryInstructions = `You shorten a conversation between a user and an assistant for the assistant, which continues it and sees only your text of what was said before.
Keep what it needs: what the user wants and has decided, names, numbers, addresses and other facts, what tools were called for and what came of it, what was promised and is not done yet.
Leave out greetings, repetition and detours. Write plain text in the language of the conversation, at most 500 words, and nothing else.`

const (
	// maxSummary is the longest summary, in bytes.
	maxSummary = 32 << 10
	// leftOut is more than the line takes that stands for what of a blob is left out.
	leftOut = 256
)

// beginSummary asks a model for a summary of the older part of the history, not before its time.
func (a *agent) beginSummary(e turn.Effect) func() {
	s := a.state.Summary
	m := a.def.models[s.Model]
	items := texts(a.state.History.Before(s.Upto))
	c := &modelCall{a: a, effect: e, provider: m.provider, request: providers.Request{
		Model: m.name, Instructions: a.def.summaryInstructions(), Agent: a.id, Call: e.Call, Settings: forSummary(m.settings),
	}}
	// An attempt that broke off in the middle of its answer has used more than nothing, even if
	// it does not report that.
	c.failed = func(err *providers.Error) any {
		failed := c.erred(err)
		failed.Unknown = failed.Unknown || err == errLost
		return failed
	}
	wait := a.pace()
	return a.run(e, c.lost, func(ctx context.Context) any {
		if wait(ctx) != nil || pause(ctx, time.Until(e.Until)) != nil {
			return nil // its outcome is not awaited
		}
		shown, err := a.rt.blobs.show(ctx, a.id, items, projections.MaxSummarized-leftOut)
		if err != nil {
			return c.failed(providers.AsError(err))
		}
		c.request.Items = []messages.Item{messages.Text(messages.RoleUser, transcript(shown))}
		resp, failure := c.generate(ctx)
		if failure != nil {
			return c.failed(failure)
		}
		return summarized(e.Call, resp)
	})
}

// summaryInstructions returns the instructions of a model that makes a summary.
func (d Definition) summaryInstructions() string {
	return cmp.Or(d.Compact.Instructions, SummaryInstructions)
}

// forSummary returns the settings of a model that makes a summary.
func forSummary(s providers.Settings) providers.Settings {
	s.HostedTools = nil
	return s
}

// texts returns the items without what no transcript has: images, and what only a
// provider can read, may be large and may be gone.
func texts(items []messages.Item) []messages.Item {
	items = slices.Clone(items)
	for i := range items {
		it := &items[i]
		it.Raw, it.RawBlob = nil, nil
		if it.Content.HasBlob() {
			it.Content = slices.DeleteFunc(slices.Clone(it.Content), func(p messages.Part) bool { return p.Type != "text" })
		}
	}
	return items
}

// transcript returns a conversation as a text: a model that is given calls as items
// wants the tools, too, and may use them.
func transcript(items []messages.Item) string {
	var b strings.Builder
	b.WriteString("This is the conversation to shorten.\n")
	for _, item := range items {
		text, most := "", projections.MaxSummarized
		switch item.Type {
		case messages.ItemMessage, messages.ItemRefusal:
			role := item.Role
			if role == messages.RoleDeveloper { // an earlier summary may be one
				role, most = "note", maxSummary
			}
			text = role + ": " + item.Content.Text()
		case messages.ItemCall:
			text = "assistant calls " + item.Name + " with " + item.Arguments
		case messages.ItemCallOutput:
			text = "result: " + item.Output
		}
		if text != "" {
			b.WriteString("\n" + printable(text, most) + "\n")
		}
	}
	return b.String()
}

// summarized returns what came of an answer. One that is cut off or declined is no summary: it would
// stand for the history all the same.
func summarized(call messages.CallID, resp *providers.Response) any {
	failed := turn.ModelErred{Call: call, Kind: providers.BadAnswer, Message: "the answer has no text", Temporary: true, Usage: resp.Usage.Clamped(), Unknown: true}
	var texts []string
	for _, item := range resp.Items {
		switch item.Type {
		case messages.ItemRefusal:
			resp.Finish = messages.FinishRefusal
		case messages.ItemMessage:
			texts = append(texts, item.Content.Text())
		}
	}
	text := strings.TrimSpace(strings.Join(texts, "\n"))
	switch {
	case messages.CutOff(resp.Finish) || resp.Finish == messages.FinishRefusal:
		failed.Kind, failed.Message, failed.Temporary = messages.ModelFailure(resp.Finish), "the answer is incomplete", false
	case text != "":
		return turn.Summarized{Call: call, Text: printable(text, maxSummary), Usage: resp.Usage.Clamped()}
	}
	return failed
}
