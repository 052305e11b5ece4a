package turn

import (
	"errors"
	"fmt"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// FoldVersion is raised with every change of what [State.Apply] makes of events
// or of how a [Snapshot] is written: a snapshot holds for one version alone, and
// those of others are rebuilt from the log. TestFoldVersion fails where it must be raised.
const FoldVersion = 12

// SnapshotName is what snapshots of states of this version are kept under.
func SnapshotName() string { return fmt.Sprintf("turn-%d", FoldVersion) }

// Snapshot is a state as of one event, in the form in which it is stored. It shares with the
// state only what never changes, so that it can be encoded while the state changes.
// Its fields are for messages.EncodeSnapshot.
type Snapshot struct {
	Rest      []byte             `json:"rest"` // a packed kept
	Data      *projections.State `json:"data"`
	Processed window             `json:"processed"`
	History   []byte             `json:"history"` // in its binary form
}

// kept are the fields of a state that are packed as they are; what is volatile is left out.
type kept struct {
	Last      messages.EventNumber  `json:"last"`
	Work      projections.Work      `json:"work"`
	Life      projections.Life      `json:"life"`
	Forks     projections.Forks     `json:"forks"`
	Decisions projections.Decisions `json:"decisions"`
}

// Snapshot returns a copy of the state. It takes the time to encode the running turn, and a copy of
// the history.
func (s *State) Snapshot() (Snapshot, error) {
	rest, err := messages.Pack(&kept{
		Last: s.Last, Work: s.Work, Life: s.Life, Forks: s.Forks, Decisions: s.Decisions,
	})
	if err != nil {
		return Snapshot{}, err
	}
	data := s.Data
	history, err := s.History.MarshalBinary()
	return Snapshot{rest, &data, s.processed.copy(), history}, err
}

// errSnapshot reports that a snapshot holds no state.
var errSnapshot = errors.New("the snapshot holds no state")

// State returns the state that the events make, as after a crash: no effect of it is under
// way. The snapshot must not be used after that. Of one that was decoded from
// damaged bytes State returns an error or some state.
func (c *Snapshot) State() (*State, error) {
	if c.Data == nil || !c.Processed.valid() {
		return nil, errSnapshot
	}
	var k kept
	if err := messages.Unpack(c.Rest, &k); err != nil {
		return nil, err
	}
	s := &State{Last: k.Last, Work: k.Work, Life: k.Life, Forks: k.Forks, Decisions: k.Decisions, Data: *c.Data, processed: c.Processed}
	if err := s.History.UnmarshalBinary(c.History); err != nil {
		return nil, err
	}
	return s, nil
}
