package pagetest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-dev/reprise/providers/providertest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// answer reads a directive model: say "TEXT", or call NAME {"json":"args"}.
func answer(value string) (scripted.Step, error) {
	verb, rest, _ := strings.Cut(value, " ")
	switch verb {
	case "say":
		text, err := strconv.Unquote(rest)
		if err != nil {
			return scripted.Step{}, fmt.Errorf("model: say has a text in quotes: %s", rest)
		}
		return scripted.Say(text), nil
	case "call":
		name, arguments, _ := strings.Cut(rest, " ")
		if name == "" || !json.Valid([]byte(arguments)) {
			return scripted.Step{}, fmt.Errorf("model: call has the name of a tool and arguments in JSON: %s", rest)
		}
		return scripted.Ask(scripted.Call{Name: name, Arguments: arguments}), nil
	}
	return scripted.Step{}, fmt.Errorf("a model does not %q: say or call", verb)
}

// startModel starts the model server of a page, if it has one: its answers are those of the page, in order.
func startModel(p *page) (*providertest.Server, error) {
	var steps []scripted.Step
	for _, d := range p.directives {
		if d.name != "model" {
			continue
		}
		step, err := answer(d.value)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", d.line, err)
		}
		steps = append(steps, step)
	}
	if steps == nil {
		return nil, nil
	}
	return providertest.Start(providertest.Play(providertest.Steps(steps...)...), providertest.Config{})
}
