package actors

import (
	"strings"
	"sync"

	"github.com/reprise-dev/reprise/messages"
)

// What may wait for one agent, and in one partition for agents that are not active yet. Each
// is refused beyond it, but a command is never refused for its size alone.
const (
	backlogCommands = 1000
	backlogBytes    = 4 << 20
	heldCommands    = 4000
	heldBytes       = 8 << 20
)

// backlog counts the commands that an agent was sent and has not handled. Its partition
// admits them before it sends them, and the agent releases each when it has handled it: no
// mailbox grows without bound, and none blocks its sender or drops what it holds. The zero
// value is empty. Safe for concurrent use.
type backlog struct {
	mu              sync.Mutex
	commands, bytes int
	// stalled is why the agent cannot write to its log now; nil: it can.
	stalled *messages.Error
	end     end
}

// end is how an activation ends. What comes after its end is for the next one.
type end uint8

const (
	running end = iota // it has not ended, or stopped without a reason
	left               // with nothing to do, or for the agent's next owner
	failed             // it may owe work
)

// admit counts a command. It returns a refusal if the agent's log takes nothing, or if too
// much waits. If open is false, the command must not be sent to this activation.
func (b *backlog) admit(a messages.AgentID, bytes int) (open bool, refusal *messages.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.stalled != nil:
		return false, b.stalled
	case b.commands > 0 && (b.commands >= backlogCommands || b.bytes+bytes > backlogBytes):
		return false, messages.Refuse(messages.Unavailable, "%d commands of %d bytes wait for agent %s, and at most %d of %d bytes may: try again with the same id",
			b.commands, b.bytes, a, backlogCommands, backlogBytes)
	}
	b.commands, b.bytes = b.commands+1, b.bytes+bytes
	return b.end == running, nil
}

// release counts a command as handled.
func (b *backlog) release(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.commands, b.bytes = b.commands-1, b.bytes-bytes
}

// stall refuses commands with why from now on. A nil why admits them again.
func (b *backlog) stall(why *messages.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stalled = why
}

// empty reports whether nothing waits.
func (b *backlog) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.commands == 0
}

// closeEmpty ends admission to the activation if nothing waits for it, and reports whether it
// did.
func (b *backlog) closeEmpty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end == running && b.commands == 0 {
		b.end = left
	}
	return b.end != running
}

// close ends admission to the activation.
func (b *backlog) close(how end) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end = how
}

// ended returns how the activation has ended.
func (b *backlog) ended() end {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.end
}

// commandSize returns how much of a command is stored, and waits in memory, in bytes. Texts of a
// bounded length count as nothing.
func commandSize(c messages.Command) int {
	switch c := c.(type) {
	case messages.Input:
		size, _ := inputSize(c)
		return size + len(c.Options.ToolChoice)
	case messages.Decide:
		return len(c.Result)
	case messages.SetState:
		return len(c.Patch)
	case messages.Task:
		return contentSize(c.Content)
	case messages.Fork:
		return changesSize(c.Set)
	case messages.BeginFork:
		return changesSize(c.Set)
	case messages.Import:
		return changesSize(c.Set) + len(c.Digest) + len(c.File) + len(strings.Join(c.Redacted, ""))
	case messages.Report:
		size := len(c.Output) + len(c.Message)
		for _, w := range c.Waiting {
			size += eventSize + len(w.Arguments) + len(w.Reason) + len(w.Tool) + len(w.Call)
		}
		return size
	}
	return 0
}
