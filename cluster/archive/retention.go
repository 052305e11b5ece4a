package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Retention archives and deletes agents that have rested for as long as their
// kind retains them. Each node does so for the partitions that it owns, one agent
// after the other.
type Retention struct {
	// Kinds are how long agents are kept, by kind. A kind that is absent is kept forever.
	Kinds map[string]time.Duration
	// Dir is the folder that agents are archived in.
	Dir    string
	Source Source
	// Agents are those that this node owns, AllAgents those of all nodes that a query chooses.
	Agents    *projections.Agents
	AllAgents func(messages.Query) iter.Seq2[projections.Agent, error]
	// Rests reports whether an agent is this node's, owes nothing and waits for no timer.
	Rests func(messages.AgentID) bool
	Epoch func(messages.Partition) messages.Epoch
	// Ask sends a message to an agent that this node owns, Do a command, stored first, to any.
	Ask func(ctx context.Context, a messages.AgentID, m any) (messages.Answer, error)
	Do  func(ctx context.Context, agent string, c messages.Command) (messages.Answer, error)
	// Key returns an agent's key as it is kept; nil if it has none.
	Key func(ctx context.Context, a messages.AgentID) ([]byte, error)
	// Inbox is the stream of inputs that are not applied yet.
	JetStream jetstream.JetStream
	Inbox     string
	Subjects  messages.Subjects
	Logger    *slog.Logger
}

// pause is how long is waited between two agents that are deleted: retention is in no hurry.
const pause = 50 * time.Millisecond

// Every returns how often agents are to be looked at.
func (r *Retention) Every() time.Duration {
	every := time.Hour
	for _, keep := range r.Kinds {
		every = min(every, max(keep/4, 2*pause))
	}
	return every
}

// Sweep deletes the agents that are due.
func (r *Retention) Sweep(ctx context.Context, now time.Time) {
	for kind, keep := range r.Kinds {
		for _, row := range r.Agents.List(projections.AgentFilter{Kind: kind, Phase: messages.PhaseIdle}) {
			if now.Sub(row.Updated) < keep || !r.Rests(row.Agent) {
				continue
			}
			if err := r.retire(ctx, row.Agent, now); err != nil && ctx.Err() == nil {
				level := slog.LevelWarn
				if errors.Is(err, ErrFork) { // as it should be, until a person deletes it
					level = slog.LevelDebug
				}
				r.Logger.Log(ctx, level, "an agent whose time is over is still there; it is tried again", row.Agent.LogAttr(r.Epoch(row.Agent.Partition())), "error", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	}
}

// retire archives an agent and deletes it, unless something is on its way to it or
// it works meanwhile.
func (r *Retention) retire(ctx context.Context, a messages.AgentID, now time.Time) error {
	if comes, err := r.comes(ctx, a); err != nil || comes {
		return err
	}
	awake, err := r.Ask(ctx, a, &actors.Activate{Agent: a, Deletes: true}) // under this owner, which writes its own fence first
	if err == nil && awake.Err != nil {
		if awake.Err.Code == messages.Conflict { // it stays until its forks are gone
			return nil
		}
		err = awake.Err
	}
	if err != nil {
		return err
	}
	key, err := r.Key(ctx, a)
	if err != nil {
		return err
	}
	path, end, err := Write(ctx, r.Dir, r.Source, a, key, now)
	if err != nil {
		return err
	}
	if end.Last != awake.N {
		_ = os.Remove(path)
		return fmt.Errorf("it has continued: it was archived up to event %d and is at %d", end.Last, awake.N)
	}
	if comes, err := r.comes(ctx, a); err != nil || comes {
		_ = os.Remove(path)
		return err
	}
	c := messages.Delete{ID: fmt.Sprintf("retention:%d", end.Last), Last: end.Last, Reason: "retention"}
	if _, err := r.Do(ctx, a.Full(), c); err != nil { // stored first, so that it is done even if this node ends
		if messages.AsError(err).Code == messages.Conflict { // else it may have been deleted
			_ = os.Remove(path)
		}
		return err
	}
	r.Logger.Info("an agent whose time is over was archived and deleted", a.LogAttr(r.Epoch(a.Partition())), "archive", path)
	return nil
}

// comes reports whether something that was sent to the agent is not settled. It would create a
// deleted agent again, though it may have been applied: the processed ids are deleted, too.
func (r *Retention) comes(ctx context.Context, a messages.AgentID) (bool, error) {
	stream, err := r.JetStream.Stream(ctx, r.Inbox)
	if err != nil {
		return false, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(r.Subjects.InboxOfAgent(a)))
	return err == nil && len(info.State.Subjects) > 0, err
}

// Find returns what keeps agents from being retired, for a person to see to.
func (r *Retention) Find(context.Context) (found []doctor.Finding) {
	if len(r.Kinds) == 0 {
		return nil
	}
	if err := Writable(r.Dir); err != nil {
		found = append(found, doctor.Finding{Check: "retention", Status: doctor.Fail,
			Detail: fmt.Sprintf("agents whose time is over are kept, because nothing can be archived in %s: %v", r.Dir, err),
			Remedy: "let the node write there, or give it another folder (retain_to)"})
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		late := 0
		for row, err := range r.AllAgents(messages.Query{Kind: kind, Phase: messages.PhasePaused}) {
			if err == nil && time.Since(row.Updated) >= r.Kinds[kind] {
				late++
			}
		}
		if late > 0 {
			found = append(found, doctor.Finding{Check: "retention", Status: doctor.Warn,
				Detail: fmt.Sprintf("%d agents of kind %s have waited for a person for longer than idle agents are kept (%s): they are not idle, so they are kept", late, kind, r.Kinds[kind]),
				Remedy: "list them with `reprise ls --phase paused`; decide, abort or delete them; approval_timeout ends a wait automatically"})
		}
	}
	return found
}
