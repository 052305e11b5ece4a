package rerun

import (
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// life is what the frames of one run hold.
type life struct {
	forks     projections.Forks
	exchanges projections.Exchanges
	history   projections.History
	usage     projections.Usage
	life      projections.Life
}

// lived folds the frames of a run.
func lived(frames []*messages.Frame) *life {
	l := new(life)
	for _, f := range frames {
		projections.Fold(f, 0, &l.forks, &l.exchanges, &l.history, &l.usage, &l.life)
	}
	return l
}

// The runs of an agent.
const (
	RunRecorded = "recorded"
	RunReplayed = "replayed"
)

// AgentRun is one run of an agent, as a grader gets it. Its names in JSON are promises.
type AgentRun struct {
	Agent messages.AgentID `json:"agent"`
	// Run is recorded or replayed.
	Run   string                 `json:"run"`
	Turns []projections.Exchange `json:"turns"`
	// Messages are the history after the last turn, as `reprise history -o json` has it.
	Messages []projections.HistoryItem `json:"messages"`
	Used     projections.Used          `json:"used"`
}

// run returns what a grader gets.
func (l *life) run(agent messages.AgentID, run string) *AgentRun {
	return &AgentRun{
		Agent: agent, Run: run, Turns: append([]projections.Exchange{}, l.exchanges.Exchanges()...),
		Messages: append([]projections.HistoryItem{}, l.history.View()...), Used: l.usage.Total(),
	}
}
