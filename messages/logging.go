package messages

import "log/slog"

// LogAttr returns the attributes of a log message about an agent: agent, partition and,
// unless it is zero, the epoch of its owner. It is empty for an invalid address.
func (a AgentID) LogAttr(epoch Epoch) slog.Attr {
	if a.Validate() != nil {
		return slog.Attr{}
	}
	attrs := []any{slog.String("agent", a.String()), slog.Int("partition", int(a.Partition()))}
	if epoch != 0 {
		attrs = append(attrs, slog.Uint64("epoch", uint64(epoch)))
	}
	return slog.Group("", attrs...) // without a name its attributes are inlined
}
