package actors

import (
	"strings"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// maxMessage is the longest text of an error that is kept, in bytes.
const maxMessage = 16 << 10

// maxKind is the longest kind of a provider's error that is kept, in bytes.
const maxKind = 128

// printable makes text that JSON and msgpack can carry, bad bytes shown, and
// cuts it where it is longer than most.
func printable(s string, most int) string {
	if s = valid(s); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + " [cut]"
	}
	return s
}

// eventSize is more than an event takes beside the texts it holds.
const eventSize = 512

// resultSize estimates how many bytes an outcome adds to a frame, with the
// events that follow from it.
func resultSize(result any) int {
	switch r := result.(type) {
	case turn.ToolReturned:
		return eventSize + len(r.Output) + decisionsSize(r.Hooks)
	case turn.Summarized:
		return eventSize + len(r.Text)
	case turn.ModelErred:
		return eventSize + len(r.Message)
	case turn.ToolReconciled:
		return eventSize + len(r.Output)
	case turn.HooksAsked:
		return eventSize + decisionsSize(r.Decisions) + len(r.Rewritten) + refsSize(r.RewrittenBlob)
	case hooksDone:
		return resultSize(r.HooksAsked)
	case turn.ModelAnswered:
		size := eventSize + len(r.Model) + len(r.Finish) + 2*refsSize(r.Blob)
		for _, item := range r.Items {
			size += itemSize(item)
		}
		for _, j := range r.Reviewed {
			size += len(j.Misfit) + decisionsSize(j.Hooks)
		}
		return size + decisionsSize(r.Hooks)
	}
	return eventSize
}

// decisionsSize counts the decisions of hooks, new arguments also where their
// approval is asked and where they run.
func decisionsSize(list []turn.HookDecision) int {
	size := 0
	for _, d := range list {
		size += eventSize + len(d.Reason) + 2*len(d.Text) + 3*len(d.Arguments)
	}
	return size
}

// itemSize counts what is in the answer and again in what follows from
// it: the text in the turn's output, a call in its request, start and failure.
func itemSize(item messages.Item) int {
	size := 2*contentSize(item.Content) + 2*len(item.Arguments) + 3*len(item.Name) + 6*len(item.CallID) +
		len(item.Output) + len(item.Raw) + len(item.Type) + len(item.Role) + len(item.ID) + len(item.Provider) +
		refsSize(item.Blob, item.RawBlob)
	if item.Type == messages.ItemCall {
		return size + eventSize
	}
	return size + 64
}

// refsSize returns what references to blobs take.
func refsSize(list ...*messages.Blob) (size int) {
	for _, b := range list {
		if b != nil {
			size += refSize
		}
	}
	return size
}

func contentSize(c messages.Content) int {
	size := 0
	for _, p := range c {
		size += len(p.Type) + len(p.Text) + len(p.ImageURL) + len(p.Detail) + 32 + refsSize(p.Blob)
	}
	return size
}

// changesSize counts the texts of a fork's changes.
func changesSize(c messages.ForkChanges) int {
	size := len(c.Model)
	if c.Instructions != nil {
		size += len(*c.Instructions)
	}
	for _, name := range c.Tools {
		size += len(name) + 8
	}
	return size
}

// frameRest is what a frame holds beside an input's content: its own fields and
// those of the other events.
const frameRest = 4 << 10

// fits refuses a command that the log does not take: an append that is refused would stop what the
// agent is doing.
func (r *Runtime) fits(c messages.Command) *messages.Error {
	if err := messages.Bounded(c); err != nil {
		return messages.AsError(err)
	}
	size := commandSize(c)
	switch c := c.(type) {
	case messages.Input:
		var least int
		if size, least = inputSize(c); size > r.blobs.most {
			return messages.Refuse(messages.TooLarge, "the input has %d bytes: the limit is %d", size, r.blobs.most)
		}
		if r.offloads(c) {
			size = least
		}
		if size > messages.MaxBody {
			return messages.Refuse(messages.TooLarge, "the parts of the input that the log itself keeps (metadata, and small parts of content) have %d bytes: the limit is %d", size, messages.MaxBody)
		}
	case messages.Decide:
		if size > r.maxResult {
			return messages.Refuse(messages.TooLarge, "the result has %d bytes: the limit is %d", size, r.maxResult)
		}
	}
	if size >= r.maxText {
		return messages.Refuse(messages.TooLarge, "the %s has %d bytes: the log here takes less than %d", c.CommandType(), size, r.maxText)
	}
	return nil
}
