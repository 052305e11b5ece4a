package turn_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/actors/turn/turntest"
	"github.com/reprise-dev/reprise/messages"
)

// branch is an agent that was forked from the agent of a story.
type branch struct {
	t    *testing.T
	name string
	env  turn.Env
	live *turn.State
	log  []*messages.Frame
}

// branchOf returns the state of a story's agent as of an event of its last frame.
func branchOf(t *testing.T, story string, env turn.Env, log []*messages.Frame, at messages.EventNumber) *branch {
	last := *log[len(log)-1]
	env.Forked = turn.ForkedFrame{First: last.First, Last: last.Last(), Time: last.Time}
	env.Agent.Key, env.Now = "zoe", env.Now.Add(24*time.Hour)
	last.Events = last.Events[:at-last.First+1]
	b := &branch{t: t, name: fmt.Sprintf("%s at %d", story, at), env: env, log: append(log[:len(log)-1:len(log)-1], &last)}
	b.live = b.folded()
	return b
}

func (b *branch) folded() *turn.State {
	s := &turn.State{}
	for _, f := range b.log {
		s.Apply(f)
	}
	return s
}

// do decides a command, and compares the state with the folded one and its snapshot.
func (b *branch) do(c messages.Command) error {
	first := b.live.Last + 1
	events, err := b.live.Decide(b.env, c)
	if err != nil || len(events) == 0 {
		return err
	}
	f := &messages.Frame{ID: messages.FrameID(fmt.Sprint("z", first)), First: first, Time: b.env.Now, Cause: messages.Cause{Type: c.CommandType(), ID: messages.IDOf(c), Endpoint: "ctl"}, Events: events}
	b.live.Record(f)
	b.log = append(b.log, f)
	live, err := b.live.Snapshot()
	if err != nil {
		return err
	}
	folded, err := b.folded().Snapshot()
	if err != nil {
		return err
	}
	read, err := folded.State()
	if err != nil {
		return err
	}
	if again, err := read.Snapshot(); err != nil || !bytes.Equal(live.Rest, folded.Rest) || !bytes.Equal(again.Rest, folded.Rest) || !bytes.Equal(again.History, folded.History) {
		b.t.Errorf("%s, %s: the states that lived, was folded and was restored differ: %v", b.name, c.CommandType(), err)
	}
	return nil
}

// rests checks that a fork has nothing of its parent to do.
func (b *branch) rests() {
	s := b.live
	if len(s.Effects()) > 0 || s.Open() || !s.Due().IsZero() || len(s.Timers.Scheduled) > 0 || s.Turn != nil && s.Turn.Paused() == "" {
		b.t.Errorf("%s: the fork has effects %v, open %t, due %v", b.name, s.Effects(), s.Open(), s.Due())
	}
}

// continues resumes the turn that the fork was made in, and ends it.
func (b *branch) continues() {
	if b.live.Turn == nil {
		return
	}
	if b.do(messages.Resume{ID: "resume"}) == nil { // a limit may refuse it
		if t := b.live.Turn; t != nil && t.Paused() == "" && len(b.live.Effects()) == 0 {
			b.t.Errorf("%s: the resumed turn waits for nothing", b.name)
		}
	}
	for _, e := range b.live.Effects() {
		if e.Do == turn.Send {
			b.t.Errorf("%s: the fork sends a message of its parent: %+v", b.name, e)
		}
	}
	if err := b.do(messages.Abort{ID: "abort"}); err != nil {
		b.t.Errorf("%s: %v", b.name, err)
	}
}

// ended checks that each input has ended once.
func (b *branch) ended() {
	open := make(map[string]int)
	for _, f := range b.log {
		for _, ev := range f.Events {
			if in, ok := ev.(messages.InputAccepted); ok {
				open[in.Input]++
			} else if messages.Is(ev.EventType(), messages.EndsInput) {
				for _, id := range messages.InputsOf(ev) {
					open[id]--
				}
			}
		}
	}
	for id, n := range open {
		if n != 0 {
			b.t.Errorf("%s: input %s was accepted %d times more than it ended", b.name, id, n)
		}
	}
}

// A fork at each event of each story does nothing of its parent's, can be resumed, and ends each input
// once; or it is refused, within a step of a turn.
func TestForkAtEachEvent(t *testing.T) {
	forks := 0
	for _, file := range turntest.Files(t, "testdata") {
		s := turntest.New(t)
		s.Play(file.Text)
		for i, f := range s.Log {
			for n := f.First; n <= f.Last(); n++ {
				b := branchOf(t, file.Name, s.Env, s.Log[:i+1], n)
				if b.live.Life.Deleted != nil {
					continue
				}
				err := b.do(messages.BeginFork{ID: "begin", Parent: "default/test/ada", At: n})
				if refused := (*messages.Error)(nil); errors.As(err, &refused) && refused.Code == messages.Conflict && n < f.Last() {
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", b.name, err)
					continue
				}
				forks++
				b.rests()
				b.continues()
				if err := b.do(messages.Clear{ID: "clear"}); err != nil {
					t.Errorf("%s: %v", b.name, err)
				}
				b.ended()
			}
		}
	}
	if forks < 1000 {
		t.Errorf("%d forks were made", forks)
	}
}
