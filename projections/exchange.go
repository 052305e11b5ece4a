package projections

import "github.com/reprise-dev/reprise/messages"

// Exchange is a turn as an evaluation sees it, with whole texts: what was asked, which tools were
// called, and the answer. A turn that continues a failed one is a part of it. Its names in JSON are
// promises.
type Exchange struct {
	Turn   messages.TurnID `json:"turn"`
	Inputs []TurnInput     `json:"inputs"`
	// Status is how the turn ended, or what it does; Reason and Message are why.
	Status  Phase  `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Calls are those of tools, in the order in which they were asked for.
	Calls  []ExchangeCall `json:"calls,omitempty"`
	Answer string         `json:"answer"`
	// Steps is how many model calls it took, Usage and Cost what these consumed.
	Steps int            `json:"steps"`
	Usage messages.Usage `json:"usage"`
	Cost  messages.Cost  `json:"cost_nanos,omitempty"`
}

// ExchangeCall is a call of a tool in an exchange.
type ExchangeCall struct {
	Call      messages.CallID `json:"call"`
	Tool      string          `json:"tool"`
	Arguments string          `json:"arguments"`
	Outcome   Outcome         `json:"outcome"`
	Output    string          `json:"output,omitempty"`
}

// Exchanges lists an agent's turns with all that was asked, called and answered. Payloads that are
// kept as blobs are left out: apply events that are whole. The zero value has none.
type Exchanges struct {
	RecordedCalls
	turns   Turns
	inputs  acceptedInputs
	asked   map[messages.TurnID][]TurnInput
	answers map[messages.TurnID]string
}

// Apply folds event number n.
func (x *Exchanges) Apply(n messages.EventNumber, ev messages.Event) {
	x.RecordedCalls.Apply(n, ev)
	x.turns.origin = x.origin
	x.turns.Apply(n, ev)
	e := x.event(n, ev)
	x.inputs.accept(e)
	if turn := x.turns.turn(e.Turn); turn != nil {
		x.texts(turn, ev)
	}
	x.inputs.drop(e)
}

// texts takes over the texts that an event brings to its turn.
func (x *Exchanges) texts(turn *Turn, ev messages.Event) {
	if x.asked == nil {
		x.asked, x.answers = make(map[messages.TurnID][]TurnInput), make(map[messages.TurnID]string)
	}
	x.asked[turn.ID] = append(x.asked[turn.ID], x.inputs.of(turn.Inputs[len(x.asked[turn.ID]):])...)
	if output, ok := turnOutput(ev); ok {
		x.answers[turn.ID] = output.Text
	}
}

// Exchanges returns every turn, oldest first.
func (x *Exchanges) Exchanges() (list []Exchange) {
	index, calls := make(map[messages.TurnID]int), x.byTurn()
	for _, t := range x.turns.turns {
		own := Exchange{
			Turn: t.ID, Inputs: append([]TurnInput{}, x.asked[t.ID]...), Status: t.Phase, Reason: t.Reason, Message: t.Message,
			Calls: calls[t.ID], Answer: x.answers[t.ID], Steps: t.Steps, Usage: t.Usage, Cost: t.Cost,
		}
		i, continues := index[t.Continues]
		if t.Continues == "" || !continues {
			i = len(list)
			list = append(list, own)
		} else {
			list[i] = list[i].continued(own)
		}
		index[t.ID] = i
	}
	return list
}

// continued returns the exchange with a turn that continues it.
func (x Exchange) continued(by Exchange) Exchange {
	x.Inputs, x.Calls = append(x.Inputs, by.Inputs...), append(x.Calls, by.Calls...)
	x.Status, x.Reason, x.Message, x.Answer, x.Steps = by.Status, by.Reason, by.Message, by.Answer, by.Steps
	x.Usage, x.Cost = x.Usage.Add(by.Usage), x.Cost.Plus(by.Cost)
	return x
}

// byTurn returns the calls of each turn.
func (x *Exchanges) byTurn() map[messages.TurnID][]ExchangeCall {
	calls := make(map[messages.TurnID][]ExchangeCall)
	for _, c := range x.List {
		calls[c.Turn] = append(calls[c.Turn], ExchangeCall{c.ID, c.Tool, c.Arguments, c.Outcome, c.Output})
	}
	return calls
}

// Asks returns what the call asks for, as [ToolCall.Asks] does.
func (c ExchangeCall) Asks() string { return (&ToolCall{Tool: c.Tool, Arguments: c.Arguments}).Asks() }
