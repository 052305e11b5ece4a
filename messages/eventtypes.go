package messages

// EventType returns "agent.created".
func (AgentCreated) EventType() string { return "agent.created" }

// EventType returns "agent.configured".
func (AgentConfigured) EventType() string { return "agent.configured" }

// EventType returns "agent.activated".
func (AgentActivated) EventType() string { return "agent.activated" }

// EventType returns "agent.cleared".
func (AgentCleared) EventType() string { return "agent.cleared" }

// EventType returns "agent.deleted".
func (AgentDeleted) EventType() string { return "agent.deleted" }

// EventType returns "input.accepted".
func (InputAccepted) EventType() string { return "input.accepted" }

// EventType returns "input.requeued".
func (InputRequeued) EventType() string { return "input.requeued" }

// EventType returns "input.cancelled".
func (InputCancelled) EventType() string { return "input.cancelled" }

// EventType returns "input.dropped".
func (InputDropped) EventType() string { return "input.dropped" }

// EventType returns "input.recalled".
func (InputRecalled) EventType() string { return "input.recalled" }

// EventType returns "command.noop".
func (CommandNoop) EventType() string { return "command.noop" }

// EventType returns "turn.started".
func (TurnStarted) EventType() string { return "turn.started" }

// EventType returns "turn.paused".
func (TurnPaused) EventType() string { return "turn.paused" }

// EventType returns "turn.resumed".
func (TurnResumed) EventType() string { return "turn.resumed" }

// EventType returns "turn.completed".
func (TurnCompleted) EventType() string { return "turn.completed" }

// EventType returns "turn.failed".
func (TurnFailed) EventType() string { return "turn.failed" }

// EventType returns "turn.aborted".
func (TurnAborted) EventType() string { return "turn.aborted" }

// EventType returns "model.requested".
func (ModelRequested) EventType() string { return "model.requested" }

// EventType returns "model.completed".
func (ModelCompleted) EventType() string { return "model.completed" }

// EventType returns "model.failed".
func (ModelFailed) EventType() string { return "model.failed" }

// EventType returns "model.restarted".
func (ModelRestarted) EventType() string { return "model.restarted" }

// EventType returns "model.switched".
func (ModelSwitched) EventType() string { return "model.switched" }

// EventType returns "tool.requested".
func (ToolRequested) EventType() string { return "tool.requested" }

// EventType returns "tool.flagged".
func (ToolFlagged) EventType() string { return "tool.flagged" }

// EventType returns "tool.started".
func (ToolStarted) EventType() string { return "tool.started" }

// EventType returns "tool.completed".
func (ToolCompleted) EventType() string { return "tool.completed" }

// EventType returns "tool.failed".
func (ToolFailed) EventType() string { return "tool.failed" }

// EventType returns "tool.denied".
func (ToolDenied) EventType() string { return "tool.denied" }

// EventType returns "tool.skipped".
func (ToolSkipped) EventType() string { return "tool.skipped" }

// EventType returns "tool.unknown".
func (ToolUnknown) EventType() string { return "tool.unknown" }

// EventType returns "approval.requested".
func (ApprovalRequested) EventType() string { return "approval.requested" }

// EventType returns "approval.granted".
func (ApprovalGranted) EventType() string { return "approval.granted" }

// EventType returns "approval.denied".
func (ApprovalDenied) EventType() string { return "approval.denied" }

// EventType returns "approval.forgotten".
func (ApprovalForgotten) EventType() string { return "approval.forgotten" }

// EventType returns "child.spawned".
func (ChildSpawned) EventType() string { return "child.spawned" }

// EventType returns "child.waiting".
func (ChildWaiting) EventType() string { return "child.waiting" }

// EventType returns "child.resumed".
func (ChildResumed) EventType() string { return "child.resumed" }

// EventType returns "child.decided".
func (ChildDecided) EventType() string { return "child.decided" }

// EventType returns "child.settled".
func (ChildSettled) EventType() string { return "child.settled" }

// EventType returns "child.completed".
func (ChildCompleted) EventType() string { return "child.completed" }

// EventType returns "child.failed".
func (ChildFailed) EventType() string { return "child.failed" }

// EventType returns "child.aborted".
func (ChildAborted) EventType() string { return "child.aborted" }

// EventType returns "child.stopped".
func (ChildStopped) EventType() string { return "child.stopped" }

// EventType returns "child.reported".
func (ChildReported) EventType() string { return "child.reported" }

// EventType returns "state.patched".
func (StatePatched) EventType() string { return "state.patched" }

// EventType returns "hook.decided".
func (HookDecided) EventType() string { return "hook.decided" }

// EventType returns "budget.reserved".
func (BudgetReserved) EventType() string { return "budget.reserved" }

// EventType returns "budget.settled".
func (BudgetSettled) EventType() string { return "budget.settled" }

// EventType returns "budget.exhausted".
func (BudgetExhausted) EventType() string { return "budget.exhausted" }

// EventType returns "budget.raised".
func (BudgetRaised) EventType() string { return "budget.raised" }

// EventType returns "timer.set".
func (TimerSet) EventType() string { return "timer.set" }

// EventType returns "timer.fired".
func (TimerFired) EventType() string { return "timer.fired" }

// EventType returns "timer.cancelled".
func (TimerCancelled) EventType() string { return "timer.cancelled" }

// EventType returns "compaction.requested".
func (CompactionRequested) EventType() string { return "compaction.requested" }

// EventType returns "compaction.failed".
func (CompactionFailed) EventType() string { return "compaction.failed" }

// EventType returns "history.compacted".
func (HistoryCompacted) EventType() string { return "history.compacted" }
