package gateway

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// The refusal of an unknown view names those that an agent has, and the filters of each are known.
func TestViewsHaveFilters(t *testing.T) {
	err := new(Gateway).view(nil, messages.AgentID{}, messages.Query{View: "nothing"})
	named := regexp.MustCompile(`\w+`).FindAllString(regexp.MustCompile(`has the views (.*)$`).FindStringSubmatch(err.Error())[1], -1)
	named = slices.DeleteFunc(named, func(word string) bool { return word == "and" })
	if known := slices.Sorted(maps.Keys(filterableOfAgent)); !slices.Equal(slices.Sorted(slices.Values(named)), known) {
		t.Errorf("got %q, but filters of %q", named, known)
	}
}
