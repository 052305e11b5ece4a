package turn

import (
	"errors"
	"fmt"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// FoldVersion is raised with every change of what [State.Apply] makes of events
// or of how an [Image] is written: a snapshot holds for one version alone, and
// those of others are rebuilt from the log. TestFoldVersion fails where it must be raised.
const FoldVersion = 8

// SnapshotName is what snapshots of states of this version are kept under.
func SnapshotName() string { return fmt.Sprintf("turn-%d", FoldVersion) }

// Image is a state as it was at some moment, for a snapshot. It shares with the
// state only what never changes, so that it can be encoded while the state changes.
// Its fields are for messages.EncodeSnapshot.
type Image struct {
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
	Decisions projections.Decisions `json:"decisions"`
}

// Image returns a copy of the state. It takes the time to encode the running turn, and a copy of
// the history.
func (s *State) Image() (Image, error) {
	rest, err := messages.Pack(&kept{
		Last: s.Last, Work: s.Work, Life: s.Life, Decisions: s.Decisions,
	})
	if err != nil {
		return Image{}, err
	}
	data := s.Data
	history, err := s.History.MarshalBinary()
	return Image{rest, &data, s.processed.image(), history}, err
}

// errImage reports that an image holds no state.
var errImage = errors.New("the image holds no state")

// State returns the state that the events make, as after a crash: no effect of it is under
// way. The image must not be used after that. An image that was decoded from strange bytes
// gives an error or a state.
func (im *Image) State() (*State, error) {
	if im.Data == nil || !im.Processed.valid() {
		return nil, errImage
	}
	var k kept
	if err := messages.Unpack(im.Rest, &k); err != nil {
		return nil, err
	}
	s := &State{Last: k.Last, Work: k.Work, Life: k.Life, Decisions: k.Decisions, Data: *im.Data, processed: im.Processed}
	if err := s.History.UnmarshalBinary(im.History); err != nil {
		return nil, err
	}
	return s, nil
}
