package messages

import (
	"reflect"
	"slices"
	"strings"
)

// Source is which senders may send the commands of a type.
type Source int

// The sources.
const (
	FromInput Source = iota // those that may publish to the agent's input subject
	FromCtl                 // those that may publish to its command subject
	FromAgent               // other agents only
)

// commandTable holds every type of command. Decoding, validation, lists and
// permissions follow from it: a new command is a struct and an entry here.
var commandTable = []*commandEntry{
	command[Input](FromInput, nil),
	command[Interrupt](FromCtl, nil, "Turn"),
	command[Abort](FromCtl, nil, "Turn"),
	command[Clear](FromCtl, nil),
	command(FromCtl, Cancel.check, "Input", "Timer"),
	command(FromCtl, Compact.check),
	command(FromCtl, Resume.check, "Turn"),
	command(FromCtl, Approve.check, "Call", "Turn", "ArgsHash"),
	command(FromCtl, Deny.check, "Call", "Turn", "ArgsHash"),
	command(FromCtl, Forget.check, "Tool"),
	command(FromCtl, Decide.check, "Call", "Turn"),
	command(FromCtl, SetState.check),
	command[Delete](FromCtl, nil),
	command(FromCtl, Fork.check, "Fork"),
	command[UseTools](FromCtl, nil),
	command[Detach](FromCtl, nil),
	command(FromCtl, Import.check, "Source"),
	command(FromAgent, Task.check),
	command(FromAgent, CancelChild.check),
	command(FromAgent, Report.check).withoutReason(),
	command(FromAgent, DecisionEffect.check),
	command(FromAgent, BeginFork.check),
	command(FromAgent, ForkEffect.check),
}

// commandEntry is one type of command.
type commandEntry struct {
	zero  Command
	from  Source
	check func(Command) error // refuses invalid values of a decoded body; nil: none are
	known fields              // the fields that its body may have

	// The struct's fields of these names; -1 where it has none.
	id, reason, forwarded int
	// about are the fields that name the object of the command.
	about []int
}

// command returns the entry of type C. about are the fields that name the object of the
// command; their lengths together are bounded by maxReason.
func command[C Command](from Source, check func(C) error, about ...string) *commandEntry {
	t := reflect.TypeFor[C]()
	var zero C
	e := &commandEntry{
		zero: zero, from: from, known: fieldsBelow(t),
		id: fieldOf(t, "ID", reflect.String), reason: fieldOf(t, "Reason", reflect.String), forwarded: fieldOf(t, "Forwarded", reflect.Struct),
	}
	for _, name := range addressed {
		e.known[name] = nil
	}
	for _, name := range about {
		e.about = append(e.about, fieldOf(t, name, reflect.String))
	}
	if check != nil {
		e.check = func(c Command) error { return check(c.(C)) }
	}
	return e
}

// withoutReason marks a command whose field Reason is not the reason of a person.
func (e *commandEntry) withoutReason() *commandEntry {
	e.reason = -1
	return e
}

// decides reports whether the command is a person's decision about a call.
func (e *commandEntry) decides() bool { return e.forwarded >= 0 }

// commandsByType is commandTable by CommandType.
var commandsByType = func() map[string]*commandEntry {
	m := make(map[string]*commandEntry, len(commandTable))
	for _, e := range commandTable {
		m[e.zero.CommandType()] = e
	}
	return m
}()

// entryOf returns the entry of c's type. Nil: it is in no table, such as a command of a test.
func entryOf(c Command) *commandEntry {
	if e := commandsByType[c.CommandType()]; e != nil && reflect.TypeOf(e.zero) == reflect.TypeOf(c) {
		return e
	}
	return nil
}

// CommandTypes returns the types of the commands from that source.
func CommandTypes(from Source) []string {
	var types []string
	for _, e := range commandTable {
		if e.from == from {
			types = append(types, e.zero.CommandType())
		}
	}
	return types
}

// ctlTypes returns the types of the commands that ParseCommand reads, for messages.
func ctlTypes() string { return strings.Join(CommandTypes(FromCtl), ", ") }

// Commands returns one command of each type, with no field set.
func Commands() []Command {
	list := make([]Command, len(commandTable))
	for i, e := range commandTable {
		list[i] = e.zero
	}
	return list
}

// IDOf returns the command's idempotency key within its agent. It is never empty once an
// endpoint has accepted the command.
func IDOf(c Command) string {
	if e := entryOf(c); e != nil {
		return textIn(reflect.ValueOf(c), e.id)
	}
	return ""
}

// WithID returns the command with this idempotency key.
func WithID(c Command, id string) Command {
	e := entryOf(c)
	if e == nil {
		return c
	}
	v := reflect.New(reflect.TypeOf(c)).Elem()
	v.Set(reflect.ValueOf(c))
	v.Field(e.id).SetString(id)
	return v.Interface().(Command)
}

// ReasonOf returns the reason that a person gave for a command. Empty: none.
func ReasonOf(c Command) string {
	if e := entryOf(c); e != nil {
		return textIn(reflect.ValueOf(c), e.reason)
	}
	return ""
}

// ForwardedBy returns who forwards a decision. Zero: the command is not a forwarded decision.
func ForwardedBy(c Command) Forwarded {
	if e := entryOf(c); e != nil && e.decides() {
		return reflect.ValueOf(c).Field(e.forwarded).Interface().(Forwarded)
	}
	return Forwarded{}
}

// Bounded refuses a command with a text over maxReason or MaxDenial.
func Bounded(c Command) error {
	if reason := ReasonOf(c); len(reason) > maxReason {
		return Refuse(TooLarge, "the reason has %d bytes: the limit is %d", len(reason), maxReason)
	}
	if d, ok := c.(Deny); ok && d.Text != nil && len(*d.Text) > MaxDenial {
		return Refuse(TooLarge, "the text of the denial has %d bytes: the limit is %d", len(*d.Text), MaxDenial)
	}
	about := 0
	if e := entryOf(c); e != nil {
		for _, i := range e.about {
			about += len(textIn(reflect.ValueOf(c), i))
		}
	}
	if about > maxReason {
		return Refuse(TooLarge, "what the %s is about is named with %d bytes: the limit is %d", c.CommandType(), about, maxReason)
	}
	return nil
}

// parse reads the body of a command of this type.
func (e *commandEntry) parse(raw []byte, header Header) (Command, error) {
	if err := e.known.check(raw); err != nil {
		return nil, err
	}
	v := reflect.New(reflect.TypeOf(e.zero))
	if err := unmarshalObject(raw, v.Interface()); err != nil {
		return nil, err
	}
	id := v.Elem().Field(e.id).Addr().Interface().(*string)
	fillText(id, header, HeaderID, HeaderMsgID)
	if err := checkID(*id); err != nil {
		return nil, err
	}
	c := v.Elem().Interface().(Command)
	if e.check != nil {
		if err := e.check(c); err != nil {
			return nil, err
		}
	}
	if err := Bounded(c); err != nil {
		return nil, err
	}
	return c, nil
}

// check refuses a Cancel unless exactly one of its fields names what to take back.
func (c Cancel) check() error {
	switch {
	case c.All && c.Input == "" && c.Timer == "", !c.All && (c.Input == "") != (c.Timer == ""):
		return nil
	}
	return Refuse(BadInput, "cancel names what to take back: set one of \"input\" to an id that show lists as queued, \"timer\" to one that the view timers lists, and \"all\" to true; to stop a running turn send interrupt or abort")
}

func (c Resume) check() error {
	if err := c.LimitOverrides.check(""); err != nil {
		return err
	}
	return c.AgentLimits.check("agent_limits.")
}

func (c Approve) check() error { return namesCall("approve", c.Call) }

func (c Deny) check() error { return namesCall("deny", c.Call) }

func (c Forget) check() error {
	if c.Tool == "" {
		return Refuse(BadInput, "forget names no tool: set \"tool\" to the one whose remembered decision is to go")
	}
	return nil
}

func (c Decide) check() error {
	if err := namesCall("decide", c.Call); err != nil {
		return err
	}
	if !slices.Contains([]Outcome{OutcomeCompleted, OutcomeFailed, OutcomeRetry}, c.Outcome) {
		return Refuse(BadInput, "outcome %q: write completed, failed or retry", c.Outcome)
	}
	return nil
}

func (c SetState) check() error {
	if len(c.Patch) == 0 || c.Patch[0] != '{' {
		return Refuse(BadInput, "patch must be a JSON object (a merge patch, RFC 7396)")
	}
	return nil
}

func namesCall(command string, call CallID) error {
	if call == "" {
		return Refuse(BadInput, "%s names no call: set \"call\" to the id that show lists as waiting", command)
	}
	return nil
}
