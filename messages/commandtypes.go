package messages

// CommandType returns "input".
func (Input) CommandType() string { return "input" }

// CommandType returns "interrupt".
func (Interrupt) CommandType() string { return "interrupt" }

// CommandType returns "abort".
func (Abort) CommandType() string { return "abort" }

// CommandType returns "clear".
func (Clear) CommandType() string { return "clear" }

// CommandType returns "cancel".
func (Cancel) CommandType() string { return "cancel" }

// CommandType returns "compact".
func (Compact) CommandType() string { return "compact" }

// CommandType returns "resume".
func (Resume) CommandType() string { return "resume" }

// CommandType returns "approve".
func (Approve) CommandType() string { return "approve" }

// CommandType returns "deny".
func (Deny) CommandType() string { return "deny" }

// CommandType returns "forget".
func (Forget) CommandType() string { return "forget" }

// CommandType returns "decide".
func (Decide) CommandType() string { return "decide" }

// CommandType returns "set_state".
func (SetState) CommandType() string { return "set_state" }

// CommandType returns "delete".
func (Delete) CommandType() string { return "delete" }

// CommandType returns "task".
func (Task) CommandType() string { return "task" }

// CommandType returns "cancel_child".
func (CancelChild) CommandType() string { return "cancel_child" }

// CommandType returns "report".
func (Report) CommandType() string { return "report" }

// CommandType returns "decision_effect".
func (DecisionEffect) CommandType() string { return "decision_effect" }
