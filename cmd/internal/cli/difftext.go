package cli

import (
	"context"
	"encoding/json"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// printParting prints where two agents part, and then what each has behind that.
func (a *app) printParting(ctx context.Context, cl *client.Client, p parting, limit int) error {
	one, other := p.Agents[0].Agent, p.Agents[1].Agent
	switch {
	case p.Last == 0:
		a.printf("%s and %s have no event in common\n", one, other)
	case len(p.Agents[0].Events)+len(p.Agents[1].Events) == 0:
		a.printf("%s and %s have the same %d events\n", one, other, p.Last)
		return nil
	default:
		a.printf("%s and %s have the same events up to %d\n", one, other, p.Last)
	}
	for _, side := range p.Agents {
		a.printf("\n%s\n", a.bold(a.out, side.Agent))
		if len(side.Events) == 0 {
			a.printf("  nothing more\n")
			continue
		}
		if a.wide {
			a.partedEvents(side)
			continue
		}
		if err := a.partedRows(ctx, cl, side, p.Last, limit); err != nil {
			return err
		}
	}
	return nil
}

// partedEvents prints the events of a side.
func (a *app) partedEvents(side parted) {
	for _, ev := range side.Events {
		line, err := json.Marshal(ev)
		if err != nil {
			continue
		}
		text, _ := a.eventLine(line)
		a.printf("%s\n", text)
	}
	if side.More {
		a.printf("  and more: `%s events %s --from %d`\n", a.started, side.Agent, side.Events[len(side.Events)-1].N+1)
	}
}

// partedRows prints the rows of a side that have an event behind last, at most so many.
func (a *app) partedRows(ctx context.Context, cl *client.Client, side parted, last messages.EventNumber, limit int) error {
	shown := 0
	for r, err := range cl.Timeline(ctx, side.Agent) {
		switch {
		case err != nil:
			return err
		case r.Last() <= last:
			continue
		case limit > 0 && shown == limit:
			a.printf("  and more: `%s replay %s --from %d`\n", a.started, side.Agent, r.N)
			return nil
		}
		shown++
		a.printf("%s\n", a.row(r))
	}
	if shown == 0 {
		a.printf("  no rows; `%s events %s --from %d` shows its events\n", a.started, side.Agent, last+1)
	}
	return nil
}
