package messages

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// Upcaster lifts an event's stored fields from one schema version to the next.
// It may change the map it is given.
type Upcaster func(map[string]any) (map[string]any, error)

// schema says how one event type is stored. The newest version is one more
// than the number of upcasters.
type schema struct {
	decode    func(*reader) (Event, error)
	upcasters []Upcaster
}

func (s schema) version() int { return len(s.upcasters) + 1 }

func of[E Event](upcasters ...Upcaster) schema {
	places := sync.Pool{New: func() any { return new(E) }} // to decode into
	read := sync.OnceValue(func() reading { return readingOf(reflect.TypeFor[E]()) })
	return schema{
		decode: func(r *reader) (Event, error) {
			e := places.Get().(*E)
			err := read()(r, reflect.ValueOf(e).Elem())
			if t, ok := any(e).(interface{ inUTC() }); ok {
				t.inUTC()
			}
			ev := *e
			*e = *new(E)
			places.Put(e)
			return ev, err
		},
		upcasters: upcasters,
	}
}

// schemas holds every event type this version can read.
var schemas = func() map[string]schema {
	m := make(map[string]schema)
	for _, s := range []struct {
		zero Event
		schema
	}{
		{AgentCreated{}, of[AgentCreated]()},
		{AgentConfigured{}, of[AgentConfigured]()},
		{AgentActivated{}, of[AgentActivated]()},
		{InputAccepted{}, of[InputAccepted]()},
		{CommandNoop{}, of[CommandNoop]()},
		{TurnStarted{}, of[TurnStarted]()},
		{TurnPaused{}, of[TurnPaused]()},
		{TurnResumed{}, of[TurnResumed]()},
		{TurnCompleted{}, of[TurnCompleted]()},
		{TurnFailed{}, of[TurnFailed]()},
		{TurnAborted{}, of[TurnAborted]()},
		{ModelRequested{}, of[ModelRequested]()},
		{ModelCompleted{}, of[ModelCompleted]()},
		{ModelFailed{}, of[ModelFailed]()},
		{ModelRestarted{}, of[ModelRestarted]()},
		{ToolRequested{}, of[ToolRequested]()},
		{ToolStarted{}, of[ToolStarted]()},
		{ToolCompleted{}, of[ToolCompleted]()},
		{ToolFailed{}, of[ToolFailed]()},
		{ToolSkipped{}, of[ToolSkipped]()},
		{ToolUnknown{}, of[ToolUnknown]()},
		{StatePatched{}, of[StatePatched]()},
		{InputRequeued{}, of[InputRequeued]()},
		{InputCancelled{}, of[InputCancelled]()},
		{InputDropped{}, of[InputDropped]()},
		{AgentCleared{}, of[AgentCleared]()},
		{ModelSwitched{}, of[ModelSwitched]()},
		{ToolDenied{}, of[ToolDenied]()},
		{ToolFlagged{}, of[ToolFlagged]()},
		{ApprovalRequested{}, of[ApprovalRequested]()},
		{ApprovalGranted{}, of[ApprovalGranted]()},
		{ApprovalDenied{}, of[ApprovalDenied]()},
		{ApprovalForgotten{}, of[ApprovalForgotten]()},
		{BudgetReserved{}, of[BudgetReserved]()},
		{BudgetSettled{}, of[BudgetSettled]()},
		{BudgetExhausted{}, of[BudgetExhausted]()},
		{BudgetRaised{}, of[BudgetRaised]()},
		{TimerSet{}, of[TimerSet]()},
		{TimerFired{}, of[TimerFired]()},
		{TimerCancelled{}, of[TimerCancelled]()},
		{HookDecided{}, of[HookDecided]()},
		{ChildSpawned{}, of[ChildSpawned]()},
		{ChildWaiting{}, of[ChildWaiting]()},
		{ChildResumed{}, of[ChildResumed]()},
		{ChildDecided{}, of[ChildDecided]()},
		{ChildSettled{}, of[ChildSettled]()},
		{ChildCompleted{}, of[ChildCompleted]()},
		{ChildFailed{}, of[ChildFailed]()},
		{ChildAborted{}, of[ChildAborted]()},
		{ChildStopped{}, of[ChildStopped]()},
		{ChildReported{}, of[ChildReported]()},
		{InputRecalled{}, of[InputRecalled]()},
		{CompactionRequested{}, of[CompactionRequested]()},
		{CompactionFailed{}, of[CompactionFailed]()},
		{HistoryCompacted{}, of[HistoryCompacted]()},
		{AgentDeleted{}, of[AgentDeleted]()},
	} {
		m[s.zero.EventType()] = s.schema
	}
	return m
}()

// inUTC forgets the zone of the machine that decodes: events are the same
// everywhere.
func (e *InputAccepted) inUTC() { toUTC(e.Deadline) }
func (e *ModelFailed) inUTC()   { toUTC(e.RetryAt) }
func (e *ChildWaiting) inUTC() {
	for i := range e.Waiting {
		toUTC(e.Waiting[i].ExpiresAt)
	}
}
func (e *ApprovalRequested) inUTC() { toUTC(e.ExpiresAt) }
func (e *TimerSet) inUTC() {
	toUTC(&e.Set)
	toUTC(&e.At)
	if e.Input != nil {
		toUTC(e.Input.Deadline)
	}
}

// decodeEvent reads one event's data, lifting it to the newest schema.
func decodeEvent(eventType string, version int, data []byte) (Event, error) {
	s, ok := schemas[eventType]
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: event type %q is unknown to this version", ErrNewer, eventType)
	case version > s.version():
		return nil, fmt.Errorf("%w: %s has schema version %d, this version reads up to %d", ErrNewer, eventType, version, s.version())
	case version < 1:
		return nil, fmt.Errorf("%s has schema version %d: versions begin at 1", eventType, version)
	}
	if version < s.version() {
		lifted, err := upcast(s.upcasters[version-1:], data)
		if err != nil {
			return nil, fmt.Errorf("%s version %d: %w", eventType, version, err)
		}
		data = lifted
	}
	r := readerOf(data)
	defer r.release()
	e, err := s.decode(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", eventType, err)
	}
	return e, nil
}

func upcast(ups []Upcaster, data []byte) ([]byte, error) {
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
