package messages

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/reprise-dev/reprise/messages/internal/codec"
)

// Trait is a property of all events of a type. Other packages use traits, so that they need
// not know the types.
type Trait uint32

// The traits.
const (
	BeginsTurn      Trait = 1 << iota // its turn starts
	EndsTurn                          // its turn has ended
	HoldsTurn                         // its turn pauses or resumes
	JoinsTurn                         // the inputs that it names belong to the turn that it names
	LeavesTurn                        // the inputs that it names no longer belong to that turn
	EndsInput                         // it is the terminal event of the inputs that it names
	Replied                           // it is sent to the subject that the input's sender named
	BeginsModelCall                   // a model is about to be called
	EndsModelCall                     // a call of a model has an outcome
	Summarizes                        // the call of a model is for a summary of the history
	EndsTool                          // a call of a tool has an outcome
	Failed                            // that outcome, or that of the turn, is a failure
	Lost                              // that outcome is not known: the process ended before
	EndsAgent                         // nothing before it belongs to the agent any more
	Public                            // it holds no content of the agent
	Indexed                           // the index of all agents reads it
	AdmitsInputs                      // a model is shown the inputs that it names
	OfTool                            // it is about a call of a tool
	CountsUse                         // it counts against the budgets of its turn and the agent
	ClearsAgent                       // the agent's inputs, timers, history, state and decisions are dropped
	BeginsFork                        // the events before it are not in the agent's own log
)

// eventTable holds every type of event that this version can read. Decoding, traits and
// lists follow from it: a new event is a struct and an entry here. Those that the design
// does not list say why they are needed.
var eventTable = []*eventEntry{
	event[AgentCreated](0),
	event[AgentConfigured](0),
	event[AgentActivated](Public),
	event[AgentCleared](Indexed | ClearsAgent),
	event[AgentDeleted](EndsAgent | Public | Indexed | ClearsAgent),

	event[AgentForked](BeginsFork | Indexed),
	event[AgentImported](BeginsFork | Indexed).because("the log of an agent that was exported elsewhere begins with the events of the file"),
	event[ForkRequested](0).because("the parent of a fork has it on record before the fork begins, also after a crash, and is not deleted below it"),
	event[ForkSettled](0).because("a person learns whether a fork has begun"),
	event[ForkDetached](Indexed).because("a fork whose parent is deleted is read from its own copy"),
	event[ToolsEnabled](0).because("the tools of a fork do nothing before a person has decided so"),

	event[InputAccepted](JoinsTurn | Replied | Indexed),
	event[InputRequeued](LeavesTurn),
	event[InputCancelled](EndsInput | Replied),
	event[InputDropped](EndsInput | Replied),
	event[InputRecalled](0).because("a task that its parent has taken back may still be on its way: it must not begin when it comes"),
	event[CommandNoop](0),

	event[TurnStarted](BeginsTurn | JoinsTurn | AdmitsInputs),
	event[TurnPaused](HoldsTurn),
	event[TurnResumed](HoldsTurn),
	event[TurnCompleted](EndsTurn | EndsInput | Replied | Indexed),
	event[TurnFailed](EndsTurn | EndsInput | Replied | Indexed | Failed),
	event[TurnAborted](EndsTurn | EndsInput | Replied | Indexed),

	event[ModelRequested](BeginsModelCall | Indexed | AdmitsInputs),
	event[ModelCompleted](EndsModelCall | Indexed | CountsUse),
	event[ModelFailed](EndsModelCall | Indexed | Failed | CountsUse),
	event[ModelRestarted](EndsModelCall | Indexed | Lost),
	event[ModelSwitched](0),

	event[ToolRequested](Indexed | OfTool),
	event[ToolFlagged](Indexed | OfTool),
	event[ToolStarted](Indexed | OfTool),
	event[ToolCompleted](EndsTool | Indexed | OfTool),
	event[ToolFailed](EndsTool | Indexed | Failed | OfTool),
	event[ToolDenied](EndsTool | Indexed | OfTool),
	event[ToolSkipped](EndsTool | Indexed | OfTool),
	event[ToolUnknown](EndsTool | Indexed | Lost | OfTool),

	event[ApprovalRequested](Replied | Indexed | OfTool),
	event[ApprovalGranted](Indexed | OfTool),
	event[ApprovalDenied](Indexed | OfTool),
	event[ApprovalForgotten](0).because("a person takes a remembered decision back"),

	event[ChildSpawned](0),
	event[ChildWaiting](0).because("a person sees at the root of a family what waits for approval below"),
	event[ChildResumed](0).because("what child.waiting listed waits no more"),
	event[ChildDecided](0).because("a decision made at the root is sent to the call below, also after a crash"),
	event[ChildSettled](0).because("a person learns whether a forwarded decision had its effect"),
	event[ChildCompleted](CountsUse),
	event[ChildFailed](CountsUse),
	event[ChildAborted](0),
	event[ChildStopped](CountsUse).because("what an aborted child has used counts against its parent's budget"),
	event[ChildReported](0).because("a child knows, also after a crash, what its parent has yet to receive"),

	event[StatePatched](0),
	event[HookDecided](Indexed),
	event[BudgetReserved](0),
	event[BudgetSettled](CountsUse),
	event[BudgetExhausted](0),
	event[BudgetRaised](0),
	event[TimerSet](0),
	event[TimerFired](CountsUse),
	event[TimerCancelled](CountsUse),

	event[CompactionRequested](BeginsModelCall | Summarizes | Indexed).because("the call for a summary is on record before it is paid for, as model.requested is"),
	event[CompactionFailed](EndsModelCall | Summarizes | Indexed | Failed | CountsUse).because("what a failed summary has used counts"),
	event[HistoryCompacted](EndsModelCall | Summarizes | Indexed | CountsUse),
}

// upcaster converts an event's stored fields from one schema version to the next. It may
// change its argument.
type upcaster func(map[string]any) (map[string]any, error)

// eventEntry is one type of event.
type eventEntry struct {
	zero      Event
	typ       reflect.Type
	traits    Trait
	upcasters []upcaster
	why       string    // why it is needed; empty for those that the design lists
	targets   sync.Pool // of *E, to decode into

	// The struct's fields of these names; -1 where it has none.
	turn, step, call, input, inputs, model, kind, disposition, definition int
}

// event returns the entry of type E. Its schema version is the number of its upcasters plus
// one.
func event[E Event](traits Trait, upcasters ...upcaster) *eventEntry {
	var zero E
	t := reflect.TypeFor[E]()
	return &eventEntry{
		targets: sync.Pool{New: func() any { return new(E) }}, zero: zero, typ: t, traits: traits, upcasters: upcasters,
		turn: fieldOf(t, "Turn", reflect.String), step: fieldOf(t, "Step", reflect.Int), call: fieldOf(t, "Call", reflect.String),
		input: fieldOf(t, "Input", reflect.String), inputs: fieldOf(t, "Inputs", reflect.Slice),
		model: fieldOf(t, "Model", reflect.String), kind: fieldOf(t, "Kind", reflect.String),
		disposition: fieldOf(t, "Disposition", reflect.String),
		definition:  fieldOf(t, "Definition", reflect.String),
	}
}

// decode reads an event of the newest schema version.
func (e *eventEntry) decode(s *codec.Source) (Event, error) {
	p := e.targets.Get()
	v := reflect.ValueOf(p).Elem()
	err := s.Value(v)
	ev := v.Interface().(Event)
	v.SetZero()
	e.targets.Put(p)
	return ev, err
}

// because records why an event exists that the design does not list.
func (e *eventEntry) because(why string) *eventEntry {
	e.why = why
	return e
}

func (e *eventEntry) version() int { return len(e.upcasters) + 1 }

// eventsByType is eventTable by EventType.
var eventsByType = func() map[string]*eventEntry {
	m := make(map[string]*eventEntry, len(eventTable))
	for _, e := range eventTable {
		m[e.zero.EventType()] = e
	}
	return m
}()

// Events returns one event of each type, with no field set.
func Events() []Event {
	list := make([]Event, len(eventTable))
	for i, e := range eventTable {
		list[i] = e.zero
	}
	return list
}

// EventTypes returns the types of the events that have the trait.
func EventTypes(trait Trait) []string {
	var types []string
	for _, e := range eventTable {
		if e.traits&trait != 0 {
			types = append(types, e.zero.EventType())
		}
	}
	return types
}

// Is reports whether events of that type have the trait, or one of several. A type that
// this version does not know has none.
func Is(eventType string, traits Trait) bool { return TraitsOf(eventType)&traits != 0 }

// TraitsOf returns the traits of events of that type.
func TraitsOf(eventType string) Trait {
	if e := eventsByType[eventType]; e != nil {
		return e.traits
	}
	return 0
}

// VersionOf returns the schema version in which this version of the program stores events of that
// type; 0 for a type that it does not know.
func VersionOf(eventType string) int {
	if e := eventsByType[eventType]; e != nil {
		return e.version()
	}
	return 0
}

// decodeEvent reads one event's data and converts it to the newest schema version.
func decodeEvent(eventType string, version int, data []byte) (Event, error) {
	e, ok := eventsByType[eventType]
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: event type %q is unknown to this version", ErrNewer, eventType)
	case version > e.version():
		return nil, fmt.Errorf("%w: %s has schema version %d, this version reads up to %d", ErrNewer, eventType, version, e.version())
	case version < 1:
		return nil, fmt.Errorf("%s has schema version %d: versions begin at 1", eventType, version)
	}
	if version < e.version() {
		lifted, err := upcast(e.upcasters[version-1:], data)
		if err != nil {
			return nil, fmt.Errorf("%s version %d: %w", eventType, version, err)
		}
		data = lifted
	}
	var ev Event
	err := codec.Decode(data, func(s *codec.Source) (err error) {
		ev, err = e.decode(s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", eventType, err)
	}
	return ev, nil
}

func upcast(ups []upcaster, data []byte) ([]byte, error) {
	var fields map[string]any
	if err := msgpack.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	for _, up := range ups {
		lifted, err := up(fields)
		if err != nil {
			return nil, err
		}
		fields = lifted
	}
	return msgpack.Marshal(fields)
}
