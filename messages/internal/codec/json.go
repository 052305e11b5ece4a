package codec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// FromMsgpack returns a msgpack map as the JSON object with the same contents. It refuses what JSON
// cannot hold.
func FromMsgpack(body []byte) ([]byte, error) {
	if err := CheckMsgpack(body); err != nil {
		return nil, fmt.Errorf("the msgpack body is malformed: %w", err)
	}
	var whole any
	err := Decode(body, func(*Source) (err error) {
		d := msgpack.NewDecoder(bytes.NewReader(body))
		d.SetMapDecoder(onceEach)
		whole, err = d.DecodeInterface()
		return err
	})
	v, ok := whole.(map[string]any)
	if err != nil || !ok {
		return nil, fmt.Errorf("the msgpack body is no map with text keys, each once: %v", err)
	}
	if err := checkTexts(v); err != nil {
		return nil, fmt.Errorf("the msgpack body holds what JSON cannot: %w", err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the msgpack body holds what JSON cannot: %w", err)
	}
	return raw, nil
}

// onceEach decodes a map and refuses a key that it has twice.
func onceEach(d *msgpack.Decoder) (any, error) {
	n, err := d.DecodeMapLen()
	if err != nil || n < 0 {
		return nil, err
	}
	m := make(map[string]any)
	for range n {
		key, err := d.DecodeString()
		if err != nil {
			return nil, err
		}
		if _, twice := m[key]; twice {
			return nil, fmt.Errorf("the field %q comes twice", key)
		}
		if m[key], err = d.DecodeInterface(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// checkTexts refuses values that JSON would silently change.
func checkTexts(v any) (err error) {
	switch v := v.(type) {
	case []byte:
		return errors.New("binary data: send text, or base64 in a text")
	case string:
		if !utf8.ValidString(v) {
			return fmt.Errorf("text that is no UTF-8, beginning %x", v[:min(8, len(v))])
		}
	case map[string]any:
		for name, value := range v {
			if err = cmp.Or(err, checkTexts(name), checkTexts(value)); err != nil {
				return err
			}
		}
	case []any:
		for _, value := range v {
			if err = checkTexts(value); err != nil {
				return err
			}
		}
	}
	return nil
}

// WrongType returns what is wrong with a body that is JSON but has a value of the wrong type,
// in the words of JSON. Empty: err is another error. embedded are the unexported types of structs
// that the body is read into as a part of another.
func WrongType(err error, embedded ...string) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return ""
	}
	kind, value, _ := strings.Cut(wrong.Value, " ")
	switch {
	case value != "":
		kind = "the number " + value
	case kind == "array" || kind == "object":
		kind = "an " + kind
	default:
		kind = "a " + kind
	}
	path := strings.Split(wrong.Field, ".")
	path = slices.DeleteFunc(path, func(name string) bool { // of an embedded struct
		return name == "" || unicode.IsUpper(rune(name[0])) || slices.Contains(embedded, name)
	})
	if len(path) == 0 {
		return "the JSON body is " + kind + ": it must be an object"
	}
	return "the field " + strconv.Quote(strings.Join(path, ".")) + " of the JSON body is " + kind + ": it must be " + jsonKind(wrong.Type)
}

// jsonKind returns what the values of a type are in JSON.
func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "an object"
	case reflect.Float64:
		return "a number"
	case reflect.Uint64:
		return "a whole number that is not negative"
	default:
		return "a whole number"
	}
}

// Object returns the fields of a JSON object by their exact names. It refuses a name
// that the object has twice.
func Object(object []byte) (map[string]json.RawMessage, error) {
	if err := CheckJSONDepth(object); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	fields := make(map[string]json.RawMessage)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // within an object it is one
		if fields[name] != nil {
			return nil, fmt.Errorf("it names %q twice", name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		fields[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows behind it")
	}
	return fields, nil
}
