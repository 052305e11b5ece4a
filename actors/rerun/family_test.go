package rerun_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/rerun"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// echoing asks the clerk about what it is asked, and repeats the answer; the clerk shouts.
func echoing(r providers.Request) scripted.Step {
	last := r.Items[len(r.Items)-1]
	switch {
	case r.Agent.Kind == "clerk":
		return scripted.Say(strings.ToUpper(last.Content.Text()))
	case last.Type == messages.ItemCallOutput:
		return scripted.Say("The clerk: " + last.Output)
	}
	return ask("c1", "clerk", `{"input":"`+last.Content.Text()+`"}`)
}

func family(answer func(providers.Request) scripted.Step) actors.Config {
	cfg := new(bench).config(scripted.Func(answer))
	clerk := cfg.Definitions[0]
	clerk.Kind, clerk.Tools = "clerk", nil
	cfg.Definitions[0].Tools = []tool.Tool{actors.AsTool("clerk", "Asks the clerk")}
	cfg.Definitions = append(cfg.Definitions, clerk)
	return cfg
}

// A child is not asked again, and can be run again by itself.
func TestFamily(t *testing.T) {
	stage := actorstest.New(t, nil)
	stage.Start(family(echoing)).Must(ann, actorstest.Say("u1", "order 7"))
	stage.Until(ann, "turn.completed")
	again(t, family(echoing), rerun.Recorded{Agent: ann, Frames: stage.Frames(ann)}, rerun.Options{Model: true, Tools: rerun.AllTools}, rerun.Same, "calls: 1 equal")
	children := stage.Agents()
	if len(children) != 2 {
		t.Fatalf("got agents %v", children)
	}
	for _, a := range children {
		if a.Kind == "clerk" {
			r := again(t, family(echoing), rerun.Recorded{Agent: a, Frames: stage.Frames(a)}, model, rerun.Same)
			if r.Turns[0].Now.Answer != "ORDER 7" {
				t.Errorf("got %+v", r.Turns)
			}
		}
	}
}

// A call of a child or another tool whose arguments do not fit fails as it does in life.
func TestMisfits(t *testing.T) {
	badly := func(r providers.Request) scripted.Step {
		switch last := r.Items[len(r.Items)-1]; {
		case last.Type != messages.ItemCallOutput:
			return ask("c1", "clerk", `{"task":7}`)
		case last.CallID == "c1":
			return ask("c2", "look", `{"order":"seven"}`)
		default:
			return scripted.Say(last.Output)
		}
	}
	cfg := family(badly)
	cfg.Definitions[0].Tools = append(cfg.Definitions[0].Tools, new(bench).config(nil).Definitions[0].Tools...)
	stage := actorstest.New(t, nil)
	stage.Start(cfg).Must(ann, actorstest.Say("u1", "order 7"))
	stage.Until(ann, "turn.completed")
	r := again(t, cfg, rerun.Recorded{Agent: ann, Frames: stage.Frames(ann)}, model, rerun.Same, "calls: 2 equal")
	if len(r.Unrecorded) > 0 {
		t.Errorf("not on record: %v", r.Unrecorded)
	}
}

// An input of a timer comes when the turn before is over, whenever it was due.
func TestTimers(t *testing.T) {
	cfg := new(bench).config(scripted.New(scripted.Say("Hello."), scripted.Say("Late.")))
	stage := actorstest.New(t, nil)
	node := stage.Start(cfg)
	at := time.Now()
	node.Must(ann, actorstest.Say("u1", "Hi"))
	node.Must(ann, messages.Input{ID: "u2", Content: messages.TextContent("later"), Schedule: messages.Schedule{At: &at}})
	stage.Until(ann, "turn.completed", 2)
	cfg.Providers = providers.Set{"scripted": scripted.New(scripted.Say("Hello."), scripted.Say("Late."))}
	again(t, cfg, rerun.Recorded{Agent: ann, Frames: stage.Frames(ann)}, model, rerun.Same, "same; turns: 2")
}

// A fork is run again with its parent's inputs and its own changes.
func TestFork(t *testing.T) {
	named := func(r providers.Request) scripted.Step { return scripted.Say(r.Instructions) }
	cfg := new(bench).config(scripted.Func(named))
	stage := actorstest.New(t, nil)
	node := stage.Start(cfg)
	node.Must(ann, actorstest.Say("u1", "Hi"))
	stage.Until(ann, "turn.completed")
	zoe, brief := actorstest.Agent("support", "zoe"), "Be brief."
	node.Must(ann, messages.Fork{ID: "f1", Fork: zoe.Full(), Set: messages.ForkChanges{Instructions: &brief}})
	stage.Until(ann, "fork.settled")
	node.Must(zoe, actorstest.Say("u2", "Thanks"))
	stage.Until(zoe, "turn.completed")
	at := actorstest.Of[messages.ForkRequested](stage.Events(ann))[0].At
	var frames []*messages.Frame
	for _, f := range stage.Frames(ann) {
		if f.Last() <= at {
			frames = append(frames, f)
		}
	}
	r := again(t, cfg, rerun.Recorded{Agent: zoe, Frames: append(frames, stage.Frames(zoe)...)}, model, rerun.Differs, "first difference, in turn 1", "recorded: Be kind.", "now:      Be brief.")
	if len(r.Turns) != 2 || !r.Turns[1].Same {
		t.Errorf("got %+v", r.Turns)
	}
}

// A run leaves no goroutine behind.
func TestNothingIsLeft(t *testing.T) {
	b := new(bench)
	rec := live(t, b.config(scripted.New(scripted.Say("Hello."))), nil, "Hi")
	before := 0
	for i := range 30 {
		again(t, b.config(scripted.New(scripted.Say("Hello."))), rec, model, rerun.Same)
		if i == 5 {
			before = runtime.NumGoroutine()
		}
	}
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+5; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, then %d", before, runtime.NumGoroutine())
		}
	}
}
