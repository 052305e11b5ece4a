package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

// Definition returns a definition as it is redacted, and its hash. Names of tools, models and
// agents stay.
func (r *Redactor) Definition(hash messages.Digest, data []byte) (messages.Digest, []byte, error) {
	w := &walk{Redactor: r, root: rootDefinition, structured: true}
	changed, ok := w.json(string(data))
	if !ok {
		return "", nil, fmt.Errorf("definition %s is no JSON", hash)
	}
	if changed == string(data) {
		return hash, data, nil
	}
	data, err := json.Marshal(json.RawMessage(changed))
	if err != nil {
		return "", nil, err
	}
	r.hashes[string(hash)] = string(messages.DigestOf(data))
	return messages.DigestOf(data), data, nil
}

// Blob returns the bytes of a blob as they are redacted.
func (r *Redactor) Blob(form messages.BlobForm, data []byte) []byte {
	w := &walk{Redactor: r}
	if form == messages.BlobJSON {
		w.path = []string{"raw"}
		return []byte(w.raw(string(data)))
	}
	return []byte(w.text(string(data)))
}

// text returns a text as it is redacted. One that is JSON is redacted inside and stays JSON.
func (w *walk) text(s string) string {
	if begin := strings.TrimLeft(s, " \t\r\n"); begin != "" && (begin[0] == '{' || begin[0] == '[') {
		structured := w.structured
		w.structured = false
		defer func() { w.structured = structured }()
		if changed, ok := w.json(s); ok {
			return changed
		}
	}
	return w.leaf(s)
}

// leaf returns a text without structure as it is redacted, or collects it.
func (w *walk) leaf(s string) string {
	if !w.collecting {
		return w.replaced(w.last(), s, w.inText)
	}
	if w.under != "" {
		w.collect(w.under, w.last(), s)
	}
	return s
}

// json returns one JSON value as it is redacted, with its names in their order; s itself if nothing
// is, and false if s is no JSON.
func (w *walk) json(s string) (string, bool) {
	if !json.Valid([]byte(s)) {
		return s, false
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var out bytes.Buffer
	before := w.edits
	w.next(d, &out)
	if w.edits == before {
		return s, true
	}
	return out.String(), true
}

// next redacts the next value of valid JSON.
func (w *walk) next(d *json.Decoder, out *bytes.Buffer) {
	token, _ := d.Token() // it is valid
	switch t := token.(type) {
	case json.Delim:
		out.WriteRune(rune(t))
		for first := true; d.More(); first = false {
			if !first {
				out.WriteByte(',')
			}
			if t == '[' {
				w.next(d, out)
			} else {
				w.member(d, out)
			}
		}
		end, _ := d.Token()
		out.WriteRune(rune(end.(json.Delim)))
	case string:
		write(out, w.string(t))
	case json.Number:
		w.scalar(out, t.String())
	case bool:
		w.scalar(out, fmt.Sprint(t))
	default:
		out.WriteString("null")
	}
}

// member redacts a name and its value.
func (w *walk) member(d *json.Decoder, out *bytes.Buffer) {
	token, _ := d.Token()
	key := token.(string)
	shown := key
	if !w.structured && !w.collecting {
		shown = w.replaced("", key, w.inText)
	}
	write(out, shown)
	out.WriteByte(':')
	w.at(key, func() { w.next(d, out) })
}

// string returns a text in JSON as it is redacted.
func (w *walk) string(s string) string {
	switch {
	case w.structured && wordsOfJSON[w.last()]:
		return s
	case w.structured && namesOfJSON[w.last()]:
		if w.collecting {
			return s
		}
		return w.name(s)
	}
	return w.text(s)
}

// scalar writes a number or a truth value, or the text that takes its place.
func (w *walk) scalar(out *bytes.Buffer, literal string) {
	if w.structured {
		out.WriteString(literal)
		return
	}
	if changed := w.leaf(literal); changed != literal {
		write(out, changed)
		return
	}
	out.WriteString(literal)
}

// write writes a JSON text.
func write(out *bytes.Buffer, s string) {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string encodes, and a buffer takes it
	out.Truncate(out.Len() - 1)
}
