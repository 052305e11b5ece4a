package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/providers"
)

// Complaint is an error as servers word it. The numbers of errors that are not those of HTTP
// mean nothing here.
type Complaint struct {
	Message string
	kinds   []string // the words for it, in lower case: its type, code and status
}

// longest is how many bytes of an error that has no message of its own are shown.
const longest = 1000

// ReadComplaint reads {"error":{…}}, {"error":"…"}, {"message":…} and {"detail":…}, alone or
// as the first of a list; ok is false where there is none of them. The code of an error is its
// message if it has no other.
func ReadComplaint(body []byte) (c Complaint, ok bool) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	type members struct {
		Error, Message, Detail, Type, Code, Status json.RawMessage
		Innererror                                 struct{ Code json.RawMessage } // Azure
		Metadata                                   struct {                       // OpenRouter
			Raw      json.RawMessage
			Provider string `json:"provider_name"`
		}
	}
	var outer, inner members
	if json.Unmarshal(body, &outer) != nil && outer.Error == nil && outer.Message == nil && outer.Detail == nil {
		return c, false
	}
	c.add(outer.Type, outer.Code, outer.Status)
	switch _ = json.Unmarshal(outer.Error, &inner); {
	case inner.Message != nil:
		c.Message = plain(inner.Message)
		c.add(inner.Type, inner.Code, inner.Status, inner.Innererror.Code)
	case outer.Message != nil:
		c.Message = plain(outer.Message)
	case outer.Detail != nil:
		c.Message = plain(outer.Detail)
	default:
		c.Message = plain(outer.Error)
	}
	if raw := plain(inner.Metadata.Raw); raw != "" {
		c.from(inner.Metadata.Provider, raw)
	}
	c.Message = cmp.Or(c.Message, Text(inner.Code)) // a number alone may be a zero value
	if plain(outer.Type) == "error" {
		c.Message = cmp.Or(c.Message, plain(outer.Code))
	}
	return c, c.Message != ""
}

func (c *Complaint) add(words ...json.RawMessage) {
	for _, w := range words {
		if word := strings.ToLower(plain(w)); word != "" {
			c.kinds = append(c.kinds, word)
		}
	}
}

// from adds what the provider behind a router answered.
func (c *Complaint) from(provider, raw string) {
	under, ok := ReadComplaint([]byte(raw))
	if !ok {
		under.Message = shown(raw)
	}
	c.Message += ": " + under.Message
	if provider != "" {
		c.Message += " (" + provider + ")"
	}
	c.kinds = append(c.kinds, under.kinds...)
}

// plain is a JSON string's text, any other value's JSON, and nothing for null.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return shown(string(bytes.TrimSpace(raw)))
}

func shown(s string) string {
	if len(s) > longest {
		s = s[:longest]
	}
	return strings.ToValidUTF8(s, "")
}

var title = regexp.MustCompile(`(?is)<title>\s*(.*?)\s*</title>`)

// readBody reads the body of an error, whatever it is made of. Of a web page it takes the
// title.
func readBody(body []byte, status int) Complaint {
	if c, ok := ReadComplaint(body); ok {
		return c
	}
	text := strings.TrimSpace(string(body))
	c := Complaint{Message: http.StatusText(status)}
	switch {
	case strings.HasPrefix(text, "<"):
		if m := title.FindStringSubmatch(text); m != nil {
			c.Message = shown(m[1])
		}
		c.Message += " (the server answered with a web page: check the base URL)"
		return c
	case strings.Trim(text, "{[\"]}") == "" || text == "null" || !utf8.ValidString(text):
	default:
		c.Message = plain(json.RawMessage(text))
	}
	if status == http.StatusNotFound { // an API that lacks a model words an error of its own
		c.Message += " (the server has no such path: check the base URL)"
	}
	return c
}

// is reports whether one of the words for c contains one of these.
func (c Complaint) is(words ...string) bool {
	return slices.ContainsFunc(c.kinds, func(kind string) bool { return contains(kind, words) })
}

func contains(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}

// overflows is how servers word that a request is too long.
var overflows = []string{
	"maximum context length", "context window", "context size", "context length", "prompt is too long", "maximum prompt length", "prompt too long",
	"input token count", "exceeded model token limit", "reduce the length of the messages", "too large for model with", "request too large for",
}

func (c Complaint) tooLong() bool {
	if c.is("context_length_exceeded", "exceed_context_size", "request_too_large") {
		return true
	}
	message := strings.ToLower(c.Message)
	if m := tooManyAsked.FindStringSubmatch(message); m != nil && (len(m[1]) > len(m[2]) || len(m[1]) == len(m[2]) && m[1] >= m[2]) {
		return false // the limit of the answer alone is longer than what the model takes
	}
	return contains(message, overflows)
}

// tooManyAsked is how vLLM words that the history and the limit of the answer are too long together.
var tooManyAsked = regexp.MustCompile(`tokens' is too large: (\d+)\..*maximum context length is (\d+)`)

func (c Complaint) filtered() bool {
	return c.is("content_filter", "_policy", "responsibleaipolicyviolation") || contains(strings.ToLower(c.Message), []string{"requires moderation", "content filtering policy"})
}

// badKey reports whether c is about the key, which Gemini and xAI answer with status 400.
func (c Complaint) badKey() bool {
	message := strings.ToLower(c.Message)
	return c.is("invalid_api_key", "authentication", "permission") || strings.Contains(message, "api key not valid") || strings.Contains(message, "incorrect api key")
}

// InStream returns the error that c is when it comes in the midst of an answer.
func (c Complaint) InStream() error {
	for _, kind := range c.kinds {
		if status, err := strconv.Atoi(kind); err == nil && status >= 400 && status < 600 {
			return c.withStatus(status)
		}
	}
	switch {
	case c.is("rate_limit", "insufficient_quota"):
		return c.withStatus(http.StatusTooManyRequests)
	case c.is("not_found"):
		return c.withStatus(http.StatusNotFound)
	case c.is("invalid", "image"), c.badKey(), c.tooLong(), c.filtered():
		return c.withStatus(http.StatusBadRequest)
	}
	return c.withStatus(http.StatusInternalServerError)
}

// withStatus sorts c by an HTTP status and its own words. A message about the request itself
// comes before a status of 500: servers of chat templates answer so.
func (c Complaint) withStatus(status int) *providers.Error {
	e := &providers.Error{Kind: providers.BadRequest, Message: c.Message}
	broke := status == http.StatusConflict || status >= 500
	switch {
	case status == http.StatusRequestEntityTooLarge, c.tooLong():
		e.Kind = providers.ContextLength
		e.Message = "the request is longer than the model takes: compact the agent with a small keep, or lower show_at_most if one text is too long, or max_output_tokens, then resume the turn; the server's message: " + c.Message
	case status == http.StatusTooManyRequests, status == http.StatusPaymentRequired:
		e.Kind, e.Temporary = providers.RateLimit, status != http.StatusPaymentRequired && !c.is("insufficient_quota", "enforced_spend_limit_reached")
	case c.filtered():
		e.Kind = providers.ContentFilter
	case status == http.StatusUnauthorized, status == http.StatusForbidden, !broke && c.badKey():
		e.Kind = providers.Auth
	case status == http.StatusNotFound, !broke && c.is("model_not_found"):
		e.Kind = providers.NotFound
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		e.Kind, e.Temporary = providers.Network, true
	case status >= 500 && c.template():
	case broke:
		e.Kind, e.Temporary = providers.Overloaded, status != http.StatusNotImplemented
	case status < 400:
		e.Kind = providers.BadAnswer
	case c.is("tool_use_failed"): // Groq: the model wrote a call that cannot be read
		e.Kind, e.Temporary = providers.BadAnswer, true
	}
	return e
}

// template reports whether c is about the rendering of a chat template.
func (c Complaint) template() bool {
	return contains(strings.ToLower(c.Message), []string{"jinja", "raise_exception", "template", "roles must alternate", "single tool-calls", "system role"})
}
