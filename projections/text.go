package projections

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/messages"
)

// Printable returns s on one line and safe on a terminal: all but visible characters and spaces
// is written as Go writes it in a string, such as \n or \x1b. More than limit bytes are cut, and
// their number is written in their place; limit 0 cuts nothing.
func Printable(s string, limit int) string {
	rest := 0
	if limit > 0 {
		whole := len(s)
		s = beginning(s, limit)
		rest = whole - len(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
		i += size
	}
	if rest > 0 {
		fmt.Fprintf(&b, "… (%d more bytes)", rest)
	}
	return b.String()
}

// beginning returns the first bytes of s, at most limit and none of a character that is cut.
func beginning(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && cut > limit-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

// summarize returns an event's fields as name=value, zero values left out. Texts are whole.
func summarize(ev messages.Event) string {
	v := reflect.Indirect(reflect.ValueOf(ev))
	if v.Kind() != reflect.Struct {
		return ""
	}
	var fields []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if v.Type().Field(i).Type == reflect.TypeFor[messages.Cost]() {
			name = strings.TrimSuffix(name, "_nanos") // it is written in whole units
		}
		if f := v.Field(i); name != "" && !f.IsZero() {
			fields = append(fields, name+"="+fieldText(f.Interface()))
		}
	}
	return strings.Join(fields, " ")
}

func fieldText(value any) string {
	switch value := value.(type) {
	case messages.Content:
		return strconv.Quote(ContentText(value))
	case time.Time:
		return value.UTC().Format(time.RFC3339Nano)
	case *time.Time:
		return value.UTC().Format(time.RFC3339Nano)
	case *string:
		return strconv.Quote(*value)
	case messages.Limits:
		return strconv.Quote(limitsText(value))
	case json.RawMessage:
		return string(value)
	case *messages.Input:
		return strconv.Quote(value.ID + ": " + ContentText(value.Content))
	case *messages.Blob:
		return strconv.Quote(blobText(value))
	case []messages.Item:
		texts := make([]string, len(value))
		for i, item := range value {
			texts[i] = itemText(item)
		}
		return "[" + strings.Join(texts, "; ") + "]"
	case messages.Usage:
		return fmt.Sprintf("%d+%d", value.Input, value.Output)
	}
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.String {
		if s := v.String(); strings.ContainsAny(s, " \"=") {
			return strconv.Quote(s)
		}
		return v.String()
	}
	if v.Kind() == reflect.Struct {
		raw, err := json.Marshal(value)
		if err == nil {
			return string(raw)
		}
	}
	return fmt.Sprint(value)
}

// itemText returns an item of history as a person reads it.
func itemText(item messages.Item) string {
	switch item.Type {
	case messages.ItemMessage:
		return item.Role + ": " + ContentText(item.Content)
	case messages.ItemCall:
		return fmt.Sprintf("call %s: %s(%s)", item.CallID, item.Name, item.Arguments)
	case messages.ItemCallOutput:
		if item.Blob != nil {
			return fmt.Sprintf("result %s: [%s]", item.CallID, blobText(item.Blob))
		}
		return fmt.Sprintf("result %s: %s", item.CallID, item.Output)
	}
	return string(item.Type) + ": " + ContentText(item.Content)
}

// ContentText returns the text of a content, its images by address.
func ContentText(c messages.Content) string {
	parts := make([]string, len(c))
	for i, p := range c {
		switch parts[i] = p.Text; {
		case p.Blob != nil && p.Type == "text":
			parts[i] = "[" + blobText(p.Blob) + "]"
		case p.Blob != nil:
			parts[i] = "[image: " + blobText(p.Blob) + "]"
		case p.ImageURL != "":
			parts[i] = "[image " + p.ImageURL + "]"
		}
	}
	return strings.Join(parts, "\n")
}
