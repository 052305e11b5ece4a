package messages

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/messages/internal/codec"
)

// ParseInput reads a body that was published to an agent's input subject: plain text, JSON
// or msgpack, as the Content-Type or else the first byte shows. The id is empty if neither
// body nor headers have one.
func ParseInput(a AgentID, header Header, body []byte) (Input, error) {
	if err := checkBody(body, MaxInput); err != nil {
		return Input{}, err
	}
	in := Input{}
	if raw, isObject, err := object(header, body); err != nil {
		return Input{}, err
	} else if isObject {
		if in, err = inputOf(a, raw); err != nil {
			return Input{}, err
		}
	} else {
		if !utf8.Valid(body) {
			return Input{}, Refuse(BadInput, "the body is neither UTF-8 text nor JSON nor msgpack: it has %d bytes beginning %x", len(body), body[:min(8, len(body))])
		}
		in.Content = TextContent(string(body))
	}
	if strings.TrimSpace(in.Content.Text()) == "" && !in.Content.hasImage() {
		return Input{}, Refuse(BadInput, "the input is empty: send text, or JSON with \"content\"")
	}
	if err := fillInput(&in, header); err != nil {
		return Input{}, err
	}
	return in, nil
}

func (c Content) hasImage() bool {
	for _, p := range c {
		if p.ImageURL != "" {
			return true
		}
	}
	return false
}

func inputOf(a AgentID, raw []byte) (Input, error) {
	var body struct {
		address
		Type string `json:"type"`
		Input
	}
	if err := unmarshalObject(raw, &body); err != nil {
		return Input{}, err
	}
	if body.Type != "" && body.Type != body.Input.CommandType() {
		return Input{}, Refuse(UnknownCommand, "type %q on an input subject: only inputs are accepted here; publish commands to the ctl subject", body.Type)
	}
	if err := body.address.check(a); err != nil {
		return Input{}, err
	}
	if body.Options.MaxSteps < 0 {
		return Input{}, Refuse(BadInput, "options.max_steps is %d: it must be positive", body.Options.MaxSteps)
	}
	return body.Input, nil
}

// address is the address that a body may name.
type address struct {
	Agent  string `json:"agent"`
	Tenant string `json:"tenant"`
	Kind   string `json:"kind"`
	Key    string `json:"key"`
}

// check refuses a body that names another agent than its subject, because permissions
// were checked for the subject.
func (named address) check(a AgentID) error {
	if named.Agent != "" {
		id, err := ParseAgentID(named.Agent)
		if err != nil {
			return err
		}
		whole := address{Tenant: id.Tenant, Kind: id.Kind, Key: id.Key}
		if err := whole.check(a); err != nil {
			return err
		}
	}
	for _, t := range [...]struct{ what, body, subject string }{{"tenant", named.Tenant, a.Tenant}, {"kind", named.Kind, a.Kind}, {"key", named.Key, a.Key}} {
		if t.body != "" && t.body != t.subject {
			return Refuse(BadInput, "the body names %s %q, its subject belongs to %s: leave the address to the subject", t.what, t.body, a)
		}
	}
	return nil
}

// fillInput completes an input from the headers, and checks it.
func fillInput(in *Input, header Header) error {
	fillText(&in.ID, header, HeaderID, HeaderMsgID)
	fillText(&in.Reply, header, HeaderReply)
	fillText(&in.Policy, header, HeaderPolicy)
	if in.Policy != "" && !slices.Contains(Policies(), in.Policy) {
		return Refuse(BadInput, "policy %q: write one of %v", in.Policy, Policies())
	}
	if err := fillTime(&in.Deadline, header, HeaderDeadline); err != nil {
		return err
	}
	if err := fillSchedule(in, header); err != nil {
		return err
	}
	return checkGivenID(in.ID)
}

// fillText sets a field that the body leaves empty from the first of the headers that is set.
func fillText[S ~string](field *S, header Header, names ...string) {
	for _, name := range names {
		if *field == "" {
			*field = S(header(name))
		}
	}
}

// fillTime sets a time that the body leaves out from a header. It is in UTC in any case.
func fillTime(field **time.Time, header Header, name string) error {
	if h := header(name); h != "" && *field == nil {
		t, err := time.Parse(time.RFC3339Nano, h)
		if err != nil {
			return Refuse(BadInput, "%s %q: write an RFC 3339 time such as 2026-01-02T15:04:05Z", name, h)
		}
		*field = &t
	}
	if *field != nil {
		t := (*field).UTC()
		*field = &t
	}
	return nil
}

// addressed are the names of the fields that every body may have.
var addressed = []string{"type", "agent", "tenant", "kind", "key"}

// fields are the JSON names of a struct's fields, with those of nested objects.
type fields map[string]fields

func fieldsBelow(t reflect.Type) fields {
	known := make(fields)
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			maps.Copy(known, fieldsBelow(f.Type))
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known[name] = nil
		if f.Type.Kind() == reflect.Struct {
			known[name] = fieldsBelow(f.Type)
		}
	}
	return known
}

// check refuses an object with a field that is unknown, is there twice, or differs in
// case: a misspelt field must not be ignored, because a person may have bound a decision
// to its value.
func (known fields) check(raw []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return nil // decoding reports it
	}
	object, err := codec.Object(raw)
	if err != nil {
		return Refuse(BadInput, "the command cannot be read: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		nested, ok := known[name]
		if !ok {
			return Refuse(BadInput, "the command has no field %q: it knows %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if nested != nil {
			if err := nested.check(object[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// ParseCommand reads a body that was published to an agent's command subject: JSON or
// msgpack with a type. The id is empty if neither body nor headers have one.
func ParseCommand(a AgentID, header Header, body []byte) (Command, error) {
	return parseCommandOf(a, header, body, false)
}

// parseCommandOf reads a command. peer allows the commands that only agents send.
func parseCommandOf(a AgentID, header Header, body []byte, peer bool) (Command, error) {
	if err := checkBody(body, MaxBody); err != nil {
		return nil, err
	}
	raw, isObject, err := object(header, body)
	if err != nil {
		return nil, err
	}
	if !isObject {
		return nil, Refuse(BadInput, "a command is a JSON or msgpack object with a \"type\": %s", ctlTypes())
	}
	var head struct {
		address
		Type string `json:"type"`
	}
	if err := unmarshalObject(raw, &head); err != nil {
		return nil, err
	}
	if err := head.check(a); err != nil {
		return nil, err
	}
	e := commandsByType[head.Type]
	switch {
	case e == nil:
		return nil, Refuse(UnknownCommand, "command type %q is unknown: this version knows %s", head.Type, ctlTypes())
	case e.from == FromInput:
		return nil, Refuse(UnknownCommand, "inputs are published to the in subject, not to ctl")
	case e.from == FromAgent && !peer:
		return nil, Refuse(BadInput, "command type %q is one that agents give one another: no other sender can give it", head.Type)
	}
	c, err := e.parse(raw, header)
	if err == nil && e.from == FromCtl {
		err = checkGiven(c, peer)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// checkGiven refuses a command of a person with fields that only agents may set.
func checkGiven(c Command, peer bool) error {
	if err := checkGivenID(IDOf(c)); err != nil {
		return err
	}
	if !peer && ForwardedBy(c) != (Forwarded{}) {
		return Refuse(BadInput, "\"for\" names the agent that forwards a decision, and \"person\" who made it: no other sender can give them; leave them out, and name a person in the header %s", HeaderPerson)
	}
	return nil
}

func checkBody(body []byte, most int) error {
	if len(body) > most {
		return Refuse(TooLarge, "the body has %d bytes: the limit is %d", len(body), most)
	}
	if len(body) == 0 {
		return Refuse(BadInput, "the body is empty")
	}
	return nil
}
