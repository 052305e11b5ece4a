package actorstest_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/rerun"
	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// exported is a file as `reprise export support/ann --to FILE` writes it.
func exported(t *exampleT) string {
	ann := actorstest.Agent("support", "ann")
	stage := actorstest.New(t, nil)
	stage.Start(kind("Be kind.", "Hello.")).Must(ann, actorstest.Say("u1", "Hi"))
	stage.Until(ann, "turn.completed")
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		log.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	f, err := os.Create(filepath.Join(dir, "ann.jsonl"))
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	w, err := export.NewWriter(f, export.Head{Agent: ann.Full()})
	if err != nil {
		log.Fatal(err)
	}
	for _, frame := range stage.Frames(ann) {
		for _, c := range actorstest.Of[messages.AgentConfigured](frame.Events) {
			data, err := stage.Store().Definition(context.Background(), messages.Digest(c.Definition))
			if err != nil {
				log.Fatal(err)
			}
			if err := w.Definition(messages.Digest(c.Definition), data); err != nil {
				log.Fatal(err)
			}
		}
		if err := w.Frame(frame); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := w.Close(nil, nil); err != nil {
		log.Fatal(err)
	}
	return f.Name()
}

// kind is the configuration of an agent whose model answers with one text.
func kind(instructions, answer string) actors.Config {
	return actors.Config{
		Providers:   providers.Set{"scripted": scripted.New(scripted.Say(answer))},
		Definitions: []actors.Definition{{Kind: "support", Model: "scripted/m", Instructions: instructions}},
	}
}

// Given events, when a command is sent, then other events follow.
func ExampleNew() {
	t := new(exampleT) // in a test: its *testing.T
	defer t.end()
	ann := actorstest.Agent("support", "ann")
	stage := actorstest.New(t, nil)
	stage.Given(ann, messages.AgentCreated{Agent: ann.Full()})
	node := stage.Start(kind("Be kind.", "Hello."))
	node.Must(ann, actorstest.Say("u1", "Hi"))
	stage.Until(ann, "turn.completed")
	fmt.Println(stage.Types(ann))
	// Output: [agent.created agent.activated agent.configured input.accepted turn.started model.requested model.completed turn.completed]
}

// A file that production has exported is a test: it fails if a definition, a tool or the code decides otherwise.
func ExampleVerifyFile() {
	t := new(exampleT) // in a test: its *testing.T
	defer t.end()
	actorstest.VerifyFile(t, kind("Be kind.", ""), exported(t))
	fmt.Println("equal")
	// Output: equal
}

// The agents of a file run again with another model.
func ExampleRerunFile() {
	t := new(exampleT) // in a test: its *testing.T
	defer t.end()
	for _, result := range actorstest.RerunFile(t, kind("Be kind.", "Good day."), exported(t), rerun.Options{Model: true}) {
		turn := result.Turns[0]
		fmt.Println(result.Agent, result.Result, turn.Recorded.Answer, turn.Now.Answer)
	}
	// Output: support/ann differs Hello. Good day.
}
