package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// ArgumentError is the error of arguments that do not fit the schema of the tool.
type ArgumentError struct{ Err error }

// Error returns what does not fit, in words for the model.
func (e *ArgumentError) Error() string { return "the arguments do not fit: " + plain(e.Err) }

// Unwrap returns the failed check.
func (e *ArgumentError) Unwrap() error { return e.Err }

// Validate returns an *ArgumentError unless arguments are JSON that fits schema.
func Validate(schema *jsonschema.Resolved, arguments json.RawMessage) error {
	if len(bytes.TrimSpace(arguments)) == 0 {
		return &ArgumentError{errors.New("they are empty; write {} if there are none")}
	}
	var v any
	if err := json.Unmarshal(arguments, &v); err != nil {
		return &ArgumentError{fmt.Errorf("not JSON: %w", err)}
	}
	if err := schema.Validate(v); err != nil {
		return &ArgumentError{err}
	}
	return nil
}

// typeSchemas are the types whose schema says more, or less, than their Go form.
func typeSchemas() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	}
}

// decode reads arguments that fit the schema. Models write whole numbers as
// 5.0 or 5e2 too, which the schema takes for integers and encoding/json does
// not: those are read as what they are.
func decode(arguments json.RawMessage, into any) error {
	err := json.Unmarshal(arguments, into)
	var misfit *json.UnmarshalTypeError
	if err == nil || !errors.As(err, &misfit) {
		return err
	}
	reflect.ValueOf(into).Elem().SetZero() // it may be half filled
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return err
	}
	again, e := json.Marshal(whole(v))
	if e != nil {
		return err
	}
	return json.Unmarshal(again, into)
}

// whole writes every whole number in v without point and exponent.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case json.Number:
		if len(v) > 40 || exponent.MatchString(v.String()) {
			return v // no Go integer is that long
		}
		if r, ok := new(big.Rat).SetString(v.String()); ok && r.IsInt() {
			return json.Number(r.Num().String())
		}
	}
	return v
}

var (
	// exponent is one of three digits or more.
	exponent = regexp.MustCompile(`[eE][+-]?0*[1-9]\d\d`)
	// within is how the schema package names a place on the way to a misfit.
	within = regexp.MustCompile(`^validating (root|/\S*): `)
)

// plain is a failed check in words for a model: the place as it writes it,
// and nothing of Go.
func plain(err error) string {
	var misfit *json.UnmarshalTypeError
	if errors.As(err, &misfit) {
		return at(misfit.Field, "the "+misfit.Value+" is out of range or not a whole number")
	}
	text, place := err.Error(), ""
	for {
		m := within.FindStringSubmatch(text)
		if m == nil {
			break
		}
		text, place = text[len(m[0]):], m[1]
	}
	text = strings.ReplaceAll(text, "<invalid reflect.Value>", "null")
	return at(named(place), text)
}

// named is a place in a schema as the names that lead to it.
func named(place string) string {
	var names []string
	steps := strings.Split(place, "/")
	for i := 0; i+1 < len(steps); i++ {
		if steps[i] == "properties" {
			i++
			names = append(names, steps[i])
		}
	}
	return strings.Join(names, ".")
}

// at puts the place before the text, if there is one.
func at(place, text string) string {
	if place == "" {
		return text
	}
	return place + ": " + text
}
