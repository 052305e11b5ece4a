package actors

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// smallTexts are the texts of commands that commandSize leaves out, by their names, or by their
// paths where the name is also that of a text it counts. Their length is bounded when a command
// is read, or an agent has written them from its own log.
var smallTexts = []string{
	"ID", "Turn", "Call", "ArgsHash", "Reply", "Decision", "Child", "For", "Agent", "Account", "Endpoint", "SHA256", "Stored",
	"Policy", "How", "Outcome", "What", "Kind", "Refused", "Cron", "Zone", "Name",
	"Input", "Timer", "Forget.Tool", // what the command is about: see messages.Bounded
	"Deny.Text", "DecisionEffect.Message", "Report.Reason",
	"Fork", "BeginFork.Parent", "Begin", "ForkEffect.Message", "Import.Source",
}

// commandSize counts every text of every command that may be long: a new field of a command is
// counted or in smallTexts. The reason that a person gives is bounded.
func TestCommandSizeCountsEveryText(t *testing.T) {
	const long = 100_000
	used := make(map[string]bool)
	for _, zero := range messages.Commands() {
		typ := reflect.TypeOf(zero)
		eachText(typ, typ.Name(), itself, func(path string, set func(v reflect.Value, n int)) {
			v := reflect.New(typ).Elem()
			set(v, long)
			c := v.Interface().(messages.Command)
			name := path[strings.LastIndex(path, ".")+1:]
			small := messages.ReasonOf(c) != ""
			for _, text := range []string{name, path} {
				if slices.Contains(smallTexts, text) {
					small, used[text] = true, true
				}
			}
			if size := commandSize(c); size < long && !small {
				t.Errorf("%s of %d bytes: got size %d: count it, or add it to smallTexts if its length is bounded", path, long, size)
			}
		})
	}
	for _, text := range smallTexts {
		if !used[text] {
			t.Errorf("%s of smallTexts: no command has it", text)
		}
	}
}

func itself(v reflect.Value) reflect.Value { return v }

// eachText calls f for each text below a value of type typ, which at returns of the whole command:
// with its path, and a function that sets it to n bytes.
func eachText(typ reflect.Type, path string, at func(reflect.Value) reflect.Value, f func(path string, set func(v reflect.Value, n int))) {
	switch {
	case typ == reflect.TypeFor[json.RawMessage]():
		f(path, func(v reflect.Value, n int) { at(v).SetBytes(make([]byte, n)) })
	case typ.Kind() == reflect.String:
		f(path, func(v reflect.Value, n int) { at(v).SetString(strings.Repeat("x", n)) })
	case typ.Kind() == reflect.Pointer:
		eachText(typ.Elem(), path, func(v reflect.Value) reflect.Value {
			p := at(v)
			p.Set(reflect.New(typ.Elem()))
			return p.Elem()
		}, f)
	case typ.Kind() == reflect.Slice:
		eachText(typ.Elem(), path, func(v reflect.Value) reflect.Value {
			s := at(v)
			s.Set(reflect.MakeSlice(typ, 1, 1))
			return s.Index(0)
		}, f)
	case typ.Kind() == reflect.Struct:
		for i := range typ.NumField() {
			if field := typ.Field(i); field.IsExported() {
				eachText(field.Type, path+"."+field.Name, func(v reflect.Value) reflect.Value { return at(v).Field(i) }, f)
			}
		}
	}
}
