package actors_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// choosy is a provider that refuses the setting temperature.
type choosy struct{ *scripted.Model }

func (choosy) Refuses(string) []string { return []string{"temperature"} }

// A fallback uses its own settings, and those of the agent that its model accepts.
func TestSettingsOfModels(t *testing.T) {
	half, seed := float32(0.5), int64(3)
	s := actorstest.New(t, nil)
	no := scripted.Fail(&providers.Error{Kind: providers.BadRequest, Status: http.StatusBadRequest, Message: "no"})
	first := scripted.New(no, no)
	second := choosy{scripted.New(scripted.Say("instead"))}
	cfg := with(config(first), func(d *actors.Definition) {
		d.Fallbacks = []string{"scripted/n", "second/m"}
		d.Settings = providers.Settings{Temperature: &half, Verbosity: "high", MaxOutputTokens: 7, ExtraBody: map[string]json.RawMessage{"store": json.RawMessage("true")}}
		d.ModelSettings = map[string]providers.Settings{"second/m": {Seed: &seed, Verbosity: "low"}}
	})
	cfg.Providers["second"] = second
	s.Start(cfg).Must(ada, say("u1", "go"))
	s.Until(ada, "turn.completed")
	for _, r := range first.Requests() {
		if got, want := r.Settings, cfg.Definitions[0].Settings; !reflect.DeepEqual(got, want) {
			t.Errorf("model %s got settings %+v, want %+v", r.Model, got, want)
		}
	}
	want := providers.Settings{Seed: &seed, Verbosity: "low", MaxOutputTokens: 7}
	if got := second.Requests()[0].Settings; !reflect.DeepEqual(got, want) {
		t.Errorf("the fallback got settings %+v, want %+v", got, want)
	}
}

// The digest of a definition covers the settings of each model. The token limit of a fallback
// is not reserved for the first model.
func TestSettingsAreRecorded(t *testing.T) {
	digests := map[string]bool{}
	for _, most := range []int{0, 60_000} {
		s := actorstest.New(t, nil)
		cfg := with(config(scripted.New(scripted.Say("hello"))), func(d *actors.Definition) {
			d.Fallbacks = []string{"second/m"}
			d.Settings = providers.Settings{MaxOutputTokens: 1000}
			d.ModelSettings = map[string]providers.Settings{"second/m": {MaxOutputTokens: most}}
			d.TurnLimits = messages.Limits{MaxTokens: 50_000}
		})
		cfg.Providers["second"] = scripted.New()
		node := s.Start(cfg)
		node.Must(ada, say("u1", "go"))
		if all := s.Until(ada, "turn.completed"); actorstest.Of[messages.BudgetReserved](all)[0].Tokens > 2000 {
			t.Errorf("got reservations %+v for the first model, want at most 2000 tokens", actorstest.Of[messages.BudgetReserved](all))
		}
		digests[node.Runtime().Digests()["test"]] = true
	}
	if len(digests) != 2 {
		t.Error("definitions that differ in the settings of a model have the same digest")
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	half := float32(0.5)
	set := providers.Set{"p": choosy{scripted.New()}, "q": scripted.New()}
	for want, d := range map[string]actors.Definition{
		"the setting temperature: remove it, or set the provider's api if its": {Model: "p/m", Settings: providers.Settings{Temperature: &half}},
		"p/m refuses or ignores the setting temperature":                       {Model: "p/m", Settings: providers.Settings{Temperature: &half}},
		"p/n refuses or ignores the setting temperature":                       {Model: "p/m", Fallbacks: []string{"p/n"}, ModelSettings: map[string]providers.Settings{"p/n": {Temperature: &half}}},
		"p/sum refuses or ignores the setting temperatu":                       {Model: "q/m", Compact: actors.Compaction{Model: "p/sum"}, ModelSettings: map[string]providers.Settings{"p/sum": {Temperature: &half}}},
		"settings for p/other, which is none of its":                           {Model: "p/m", ModelSettings: map[string]providers.Settings{"p/other": {}}},
		"max_queue is 2001: write at most 2000":                                {Model: "q/m", MaxQueue: 2001},
		"model q/n is listed twice: keep one of them":                          {Model: "q/m", Fallbacks: []string{"q/n", "q/n"}},
	} {
		d.Kind = "k"
		if err := d.Validate(set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}
