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
