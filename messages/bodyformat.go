package messages

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

// object returns the body as a JSON object; ok reports whether it is one, in JSON or msgpack.
func object(header Header, body []byte) (raw []byte, ok bool, err error) {
	ct, _, _ := strings.Cut(header(HeaderContentType), ";")
	ct = strings.ToLower(strings.TrimSpace(ct))
	first := body[0]
	switch {
	case ct == "text/plain":
		return nil, false, nil
	case ct == "application/json" || strings.HasSuffix(ct, "+json") || ct == "" && first == '{':
		if !utf8.Valid(body) {
			return nil, false, Refuse(BadInput, "the JSON body is no valid UTF-8")
		}
		if err := checkJSONDepth(body); err != nil {
			return nil, false, Refuse(BadInput, "the JSON body is %v", err)
		}
		return body, true, nil
	case ct == "application/msgpack" || ct == "application/x-msgpack" || ct == "application/vnd.msgpack" ||
		ct == "" && beginsMsgpackMap(body):
		raw, err := msgpackToJSON(body)
		return raw, err == nil, err
	case ct == "":
		return nil, false, nil
	}
	return nil, false, Refuse(BadInput, "Content-Type %q: send text/plain, application/json or application/msgpack", ct)
}

// beginsMsgpackMap reports whether body begins with a msgpack map. Thaana and N'Ko text
// begins with the same bytes as a map of more than 32767 entries, which no body has.
func beginsMsgpackMap(body []byte) bool {
	switch first := body[0]; {
	case first >= 0x80 && first <= 0x8f:
		return true
	case first == 0xde || first == 0xdf:
		return len(body) < 2 || body[1] < 0x80 || body[1] > 0xbf
	}
	return false
}

func msgpackToJSON(body []byte) ([]byte, error) {
	if err := checkMsgpack(body); err != nil {
		return nil, Refuse(BadInput, "the msgpack body is malformed: %v", err)
	}
	var whole any
	err := decode(body, func(s *source) (err error) {
		s.SetMapDecoder(onceEach)
		whole, err = s.DecodeInterface()
		return err
	})
	v, ok := whole.(map[string]any)
	if err != nil || !ok {
		return nil, Refuse(BadInput, "the msgpack body is no map with text keys, each once: %v", err)
	}
	if err := checkTexts(v); err != nil {
		return nil, Refuse(BadInput, "the msgpack body holds what JSON cannot: %v", err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, Refuse(BadInput, "the msgpack body holds what JSON cannot: %v", err)
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

func unmarshalObject(raw []byte, v any) error {
	err := json.Unmarshal(raw, v)
	if err == nil {
		return nil
	}
	if e := AsError(err); e.Code != Internal {
		return e
	}
	if text := wrongType(err); text != "" {
		return Refuse(BadInput, "%s", text)
	}
	return Refuse(BadInput, "the JSON body cannot be read: %v (to send text that begins with { set Content-Type: text/plain)", err)
}

// wrongType returns what is wrong with a body that is JSON but has a value of the wrong type,
// in the words of JSON. Empty: err is another error.
func wrongType(err error) string {
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
		return name == "" || name == "address" || unicode.IsUpper(rune(name[0]))
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

// strictObject returns the fields of a JSON object by their exact names. It refuses a name
// that the object has twice.
func strictObject(object []byte) (map[string]json.RawMessage, error) {
	if err := checkJSONDepth(object); err != nil {
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
			return nil, Refuse(BadInput, "it names %q twice", name)
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
		return nil, Refuse(BadInput, "more follows behind it")
	}
	return fields, nil
}
