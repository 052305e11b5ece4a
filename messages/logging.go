package messages

import "log/slog"

// LogAttr is what a log line about an agent carries: agent, partition and, unless it
// is zero, the epoch under which its owner acts. Of an address that cannot be it is
// nothing.
func (a AgentID) LogAttr(epoch Epoch) slog.Attr {
	if a.Validate() != nil {
		return slog.Attr{}
	}
	attrs := []any{slog.String("agent", a.String()), slog.Int("partition", int(a.Partition()))}
	if epoch != 0 {
		attrs = append(attrs, slog.Uint64("epoch", uint64(epoch)))
	}
	return slog.Group("", attrs...) // without a name it is no group of its own
}
