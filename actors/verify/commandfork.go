package verify

import "github.com/reprise-dev/reprise/messages"

func forkOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	if ev, ok := ev.(messages.ForkRequested); ok {
		return messages.Fork{Fork: ev.Fork, At: ev.At, Set: ev.Set, Reason: ev.Reason}
	}
	return nil
}

func beginForkOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	if ev, ok := ev.(messages.AgentForked); ok {
		return messages.BeginFork{Parent: ev.Parent, At: ev.At, Set: ev.Set, Reason: ev.Reason}
	}
	return nil
}

func importOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	imported, ok := ev.(messages.AgentImported)
	if !ok {
		return nil
	}
	c := messages.Import{
		Source: imported.Source, Last: imported.Last, Digest: imported.Digest, File: imported.File, Redacted: imported.Redacted,
		Dry: imported.Dry, Set: imported.Set, Reason: imported.Reason,
	}
	if imported.Frames != nil {
		c.Frames = *imported.Frames
	}
	return c
}

func forkEffectOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	if ev, ok := ev.(messages.ForkSettled); ok {
		return messages.ForkEffect{Fork: ev.Fork, Begin: ev.Begin, N: ev.N, Refused: ev.Refused, Message: ev.Message}
	}
	return nil
}

func useToolsOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	if ev, ok := ev.(messages.ToolsEnabled); ok {
		return messages.UseTools{Reason: ev.Reason}
	}
	return nil
}

func detachOf(_ *stream, _ *messages.Frame, ev messages.Event) messages.Command {
	if ev, ok := ev.(messages.ForkDetached); ok {
		return messages.Detach{Reason: ev.Reason}
	}
	return nil
}
