package openai

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/profile"
)

// maxRepairs is how often a call is made again in another form. A server with more unknown
// rules than that needs a profile.
const maxRepairs = 3

// call is a call of Generate, which may take several requests.
type call struct {
	p     *Provider
	r     providers.Request
	emit  func(providers.Delta)
	begun bool // the answer has begun, so that no other may follow it
}

func (c *call) show(d providers.Delta) {
	c.begun = c.begun || d.Text != ""
	if c.emit != nil {
		c.emit(d)
	}
}

// ask makes requests until one is accepted, or refused for a reason that no other form answers.
func (c *call) ask(ctx context.Context) (providers.Response, error) {
	rules := c.p.rulesOf(c.r)
	kept := rules
	resp, err := c.p.generate(ctx, c.r, rules, c.show)
	first, tried := err, []profile.Rules{rules}
	for err != nil && !c.begun && len(tried) <= maxRepairs {
		other, lasting, ok := repair(err, rules, c.p.rules)
		if !ok {
			break
		}
		if slices.ContainsFunc(tried, func(t profile.Rules) bool { return reflect.DeepEqual(t, other) }) {
			return resp, first // the two forms refer to each other: neither is the cause
		}
		next, failed := c.p.generate(ctx, c.r, other, c.show)
		if failed != nil && other.API != rules.API && impassable[providers.AsError(failed).Kind] {
			return resp, joined(err, failed, " (over the other API: %s)")
		}
		if lasting {
			kept, _, _ = repair(err, kept, c.p.rules)
		}
		resp, err, rules = next, failed, other
		tried = append(tried, rules)
	}
	if err == nil && !reflect.DeepEqual(kept, tried[0]) {
		c.p.repaired.Store(c.r.Model, kept)
	}
	if err != nil && providers.AsError(err).Kind == providers.BadRequest {
		err = joined(err, first, " (a request in another form was refused before: %s)") // it may be the cause
	}
	return resp, err
}

// impassable are failures over another API that leave what was refused over the first: the
// server has no other, or that one lacks a setting.
var impassable = map[providers.ErrorKind]bool{providers.NotFound: true, providers.Unsupported: true}

// repair returns the rules of a request that may be accepted where one by rules was refused
// for its form, and whether later requests should be written by them too.
func repair(err error, rules, own profile.Rules) (other profile.Rules, lasting, ok bool) {
	var refused *providers.Error
	if !errors.As(err, &refused) || refused.Kind != providers.BadRequest && refused.Kind != providers.NotFound {
		return rules, false, false
	}
	return profile.Repair(refused.Message, rules, own)
}

// joined returns err with the words of another one, if these are others.
func joined(err, other error, format string) error {
	e, o := providers.AsError(err), providers.AsError(other)
	if e.Message != o.Message {
		e.Message += fmt.Sprintf(format, o.Message)
	}
	return e
}
