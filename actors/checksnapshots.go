package actors

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/messages"
)

// CheckSnapshots checks that an agent's snapshot can be read and has no event that
// its log lacks, and, if it is to look deep, that a replay results in the same; and that
// none is left of an agent that was deleted. It removes a bad one if
// it is to repair: a snapshot is a cache. One that shows that events were lost stays.
func CheckSnapshots(log snapshotLog) doctor.Check {
	return func(ctx context.Context, s doctor.Subject, o doctor.Options, report func(doctor.Finding)) error {
		check := checkSnapshot
		if s.Summary.Phase == messages.PhaseDeleted {
			check = leftBehind
		}
		f, err := check(ctx, log, s, o.Deep)
		if err != nil || f == nil {
			return err
		}
		f.Check, f.Agent = "snapshot", s.Agent
		if f.Remedy != "" { // it is evidence
			report(*f)
			return nil
		}
		f.Remedy = "it is a cache: doctor --repair removes it, and it is made again of the log; an agent in memory keeps what it has until it leaves memory"
		if o.Repair {
			if err := log.RemoveSnapshots(ctx, s.Agent, eventlog.All); err != nil {
				return err
			}
			f.Repaired, f.Remedy = true, ""
		}
		report(*f)
		return nil
	}
}

// snapshotLog is what is read of a log to check snapshots.
type snapshotLog interface {
	eventlog.Reader
	eventlog.Snapshots
}

// outlived is what to do about a snapshot of events that are lost.
const outlived = "the agent does no more work, because what it did since then is not known, and the snapshot stays as the proof of it: restore a backup that has the events, or delete the agent"

func checkSnapshot(ctx context.Context, log snapshotLog, s doctor.Subject, deep bool) (*doctor.Finding, error) {
	name := turn.SnapshotName()
	b, err := log.Snapshot(ctx, s.Agent, name)
	switch {
	case err != nil:
		return nil, err
	case b == nil:
		return unreadable(ctx, log, s, name)
	}
	var kept saved
	if err := messages.DecodeSnapshot(s.Agent, name, b, &kept); err != nil {
		return &doctor.Finding{Status: doctor.Warn, Detail: fmt.Sprintf("snapshot %s cannot be read and is passed over: %v", name, err)}, nil
	}
	upTo := kept.Tail.Last
	if upTo > s.Tail.Last {
		tail, err := log.Head(ctx, s.Agent)
		if err != nil || upTo <= tail.Last {
			return nil, err // it has been written to meanwhile
		}
		return &doctor.Finding{Status: doctor.Fail, Event: tail.Last + 1, Remedy: outlived, Detail: fmt.Sprintf("a snapshot was made at event %d and the log ends with %d: events were lost at its end, or an older copy of the log was put in place", upTo, tail.Last)}, nil
	}
	if !deep {
		return nil, nil
	}
	l, err := replayUpTo(ctx, log, s.Agent, upTo)
	if l == nil {
		return nil, err
	}
	if l.tail.Frame == kept.Tail.Frame && l.tail.Digest == kept.Tail.Digest && same(s.Agent, &l.state, &kept.State) {
		return nil, nil
	}
	return &doctor.Finding{Status: doctor.Fail, Event: upTo, Detail: fmt.Sprintf("the snapshot as of event %d is not what a replay up to there gives", upTo)}, nil
}

// replayUpTo folds the agent's frames up to the one that ends with event upto. It returns nil if
// they are damaged, which CheckHeads reports, or encrypted.
func replayUpTo(ctx context.Context, log eventlog.Reader, a messages.AgentID, upto messages.EventNumber) (*loading, error) {
	l := &loading{}
	err := l.apply(a, upto, log.Read(ctx, a, eventlog.Range{}))
	if damage := new(eventlog.DamageError); errors.As(err, &damage) || errors.Is(err, errEncrypted) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// leftBehind reports snapshots of an agent that was deleted.
func leftBehind(ctx context.Context, log snapshotLog, s doctor.Subject, _ bool) (*doctor.Finding, error) {
	names, err := log.ListSnapshots(ctx, s.Agent)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	l, err := replayUpTo(ctx, log, s.Agent, 0)
	if l == nil || l.state.Life.Deleted == nil { // it exists again
		return nil, err
	}
	return &doctor.Finding{Status: doctor.Fail, Detail: fmt.Sprintf("the agent was deleted, and snapshots of it are stored: %s", strings.Join(names, ", "))}, nil
}

// unreadable reports a snapshot that is stored, though what is read of it is nothing. An agent
// that had no cause to write one is not checked.
func unreadable(ctx context.Context, log eventlog.Snapshots, s doctor.Subject, name string) (*doctor.Finding, error) {
	if s.Tail.Last < snapshotAtEnd {
		return nil, nil
	}
	names, err := log.ListSnapshots(ctx, s.Agent)
	if err != nil || !slices.Contains(names, name) {
		return nil, err
	}
	if b, err := log.Snapshot(ctx, s.Agent, name); err != nil || b != nil { // it was being written
		return nil, err
	}
	return &doctor.Finding{Status: doctor.Warn, Detail: fmt.Sprintf("snapshot %s is not whole and is passed over", name)}, nil
}

// same reports whether a state, once it is stored and read again, is what a snapshot has, whatever
// names encrypted payloads have.
func same(a messages.AgentID, state *turn.State, snapshot *turn.Snapshot) bool {
	taken, err := state.Snapshot()
	var again turn.Snapshot
	if err == nil {
		again, err = rewritten(a, &taken)
	}
	if err != nil {
		return false
	}
	one, err := unnamed(again).State()
	if err != nil {
		return false
	}
	two, err := unnamed(*snapshot).State()
	if err != nil {
		return false
	}
	one.History.Digest() // which is kept from the first call on
	two.History.Digest()
	return reflect.DeepEqual(one, two)
}

// storedName is the field stored of a messages.Blob as it is packed.
var storedName = regexp.MustCompile("(stored.@)[0-9a-f]{64}")

// unnamed returns a snapshot with the same name for each encrypted payload. A fork has those of its
// parent in a snapshot, and those of a copy in its log once that is read in the parent's place.
func unnamed(s turn.Snapshot) *turn.Snapshot {
	same := []byte("${1}" + strings.Repeat("0", 64))
	s.Rest, s.History = storedName.ReplaceAll(s.Rest, same), storedName.ReplaceAll(s.History, same)
	return &s
}

// rewritten returns a snapshot after it was stored and read again.
func rewritten(a messages.AgentID, taken *turn.Snapshot) (again turn.Snapshot, err error) {
	b, err := messages.EncodeSnapshot(a, turn.SnapshotName(), taken)
	if err == nil {
		err = messages.DecodeSnapshot(a, turn.SnapshotName(), b, &again)
	}
	return again, err
}
