package main

import (
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/actors/rerun"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// The agents still decide what they decided when the file was recorded.
func TestRecordedTicket(t *testing.T) {
	t.Parallel()
	cfg := actors.Config{Providers: providers.Set{"demo": scripted.New()}, Definitions: agents()}
	actorstest.VerifyFile(t, cfg, "testdata/ticket-42.jsonl")
}

// Another model would have asked for the same refund. Its tools have the recorded results.
func TestOtherModel(t *testing.T) {
	t.Parallel()
	model := scripted.New(scripted.Ask(scripted.Call{Name: "refund", Arguments: `{"cents":1250,"order":7}`}), scripted.Say("You get 12.50 back."))
	cfg := actors.Config{Providers: providers.Set{"demo": model}, Definitions: agents()}
	for _, result := range actorstest.RerunFile(t, cfg, "testdata/ticket-42.jsonl", rerun.Options{}) {
		if len(result.Unrecorded) > 0 {
			t.Errorf("%s: other calls: %v", result.Agent, result.Unrecorded)
		}
	}
}
