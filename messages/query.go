package messages

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages/internal/codec"
)

// Query asks for a view of an agent, of a tenant or of the store. The answer is streamed: JSON lines,
// several to a message, then an empty message.
type Query struct {
	// View is the name of the view.
	View string `json:"view"`
	// At asks for the view as of an event. 0: the newest. In the views why and request it is the event
	// in question.
	At EventNumber `json:"at,omitempty"`
	// From is the first event, line, or byte of a blob that is wanted.
	From EventNumber `json:"from,omitempty"`
	// Limit is the most lines wanted in one page, at most 10,000. 0: 1,000.
	Limit int `json:"limit,omitempty"`
	// Follow continues with new events, for half a minute at a time. The view is events, or
	// timeline, whose rows are then those that have changed at From or later.
	Follow bool `json:"follow,omitempty"`
	// Cursor asks for the page after the one that ended with it. For a view of an agent
	// From is set, too; the page is found without the cursor, but slower.
	Cursor string `json:"cursor,omitempty"`
	// Kind selects agents of a kind.
	Kind string `json:"kind,omitempty"`
	// Phase selects agents by what they are doing.
	Phase AgentPhase `json:"phase,omitempty"`
	// Last selects agents by how their newest turn ended, or turns by how they ended. The only value
	// is `failed`.
	Last string `json:"last,omitempty"`
	// Deleted includes deleted agents.
	Deleted bool `json:"deleted,omitempty"`
	// Tool selects calls of a tool.
	Tool string `json:"tool,omitempty"`
	// Outcome selects calls of tools by their outcome.
	Outcome string `json:"outcome,omitempty"`
	// Model selects calls of a model, named as in the definition.
	Model string `json:"model,omitempty"`
	// Since selects by time: from Since on. The time is when an agent changed last, when a call was
	// requested, the hour of a model call, or when a turn of the view traces started.
	Since time.Time `json:"since,omitzero"`
	// Until selects by the same time: before Until.
	Until time.Time `json:"until,omitzero"`
	// Where are values that the arguments of a call must have, all of them, by their
	// paths: `{"order":"7","who.vip":"true"}`.
	Where map[string]string `json:"where,omitempty"`
	// Repeated selects calls that repeat an earlier one of their agent.
	Repeated bool `json:"repeated,omitempty"`
	// Text is what the view find searches for: words, phrases in double quotes, an id or the beginning
	// of one.
	Text string `json:"text,omitempty"`
	// By is what the usage of a tenant is summed by: `agent`, `kind`, `model`, `day` or `hour`. Empty:
	// `model`.
	By string `json:"by,omitempty"`
	// Remembered asks for an agent's remembered decisions instead of the calls that wait
	// for one.
	Remembered bool `json:"remembered,omitempty"`
	// Deep has the view doctor read payloads, too.
	Deep bool `json:"deep,omitempty"`
	// Repair has the view doctor of the store remove caches and unreferenced data.
	Repair bool `json:"repair,omitempty"`
	// Rate is the most frames that the view doctor reads in a second. 0: 20,000.
	Rate int `json:"rate,omitempty"`
	// Whole includes payloads that are stored as blobs in the events that refer to them, or
	// the texts of turns or of traces. The view history is always whole.
	Whole bool `json:"whole,omitempty"`
	// Blob is the blob that is wanted, by its hash or an unambiguous prefix of it; its size
	// may be left out.
	Blob Blob `json:"blob,omitzero"`
	// Tail asks for that many of the newest lines, if From is zero. Of timeline it asks for the rows
	// that begin in that many of the newest events, which alone are read.
	Tail int `json:"tail,omitempty"`
	// Turn is the turn that is wanted, or the one whose lines are wanted.
	Turn TurnID `json:"turn,omitempty"`
}

// BlobPiece is a piece of a blob: a line of the view blob.
type BlobPiece struct {
	// Blob is the whole blob.
	Blob Blob `json:"blob"`
	// Offset is the place of the piece in the blob, in bytes.
	Offset int64 `json:"offset"`
	// Data are the bytes of the piece.
	Data []byte `json:"data"`
}

// FrameLine is a frame, or a definition that the frames behind it name: a line of the view
// frames. A page begins with no knowledge of the one before it, so a definition may come again.
type FrameLine struct {
	// First is the number of the frame's first event, or of the frame behind a definition.
	First EventNumber `json:"first"`
	// Frame is the frame in msgpack as the log stores it, but never encrypted. If the log is encrypted,
	// its digest is not the one that the next frame names. Empty: this is a definition.
	Frame []byte `json:"frame,omitempty"`
	// Definition is the hash of the definition. Empty: this is a frame.
	Definition Digest `json:"definition,omitempty"`
	// Data is the definition.
	Data json.RawMessage `json:"data,omitempty"`
}

// Approval is a call that waits for a person's approval: a line of the view
// approvals.
type Approval struct {
	Agent AgentID `json:"agent"`
	Turn  TurnID  `json:"turn"`
	Call  CallID  `json:"call"`
	Tool  string  `json:"tool"`
	// Arguments are those that the call would run with.
	Arguments string `json:"arguments"`
	// ArgsHash is the SHA-256 of Arguments, in hex. A decision that names another hash is refused.
	ArgsHash string `json:"args_hash"`
	// Reason is why it needs approval. Empty: not given.
	Reason string `json:"reason,omitempty"`
	// Flagged is the earlier call that this one repeats. Empty: none is known.
	Flagged CallID `json:"flagged,omitempty"`
	// ExpiresAt is when the call is denied without a decision. Zero: never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// N is the number of its approval.requested.
	N EventNumber `json:"n"`
	// At is the time of that event.
	At time.Time `json:"at,omitzero"`
}

// Remembered is a decision that applies to an agent's later calls of a tool: a line of the
// view approvals with Query.Remembered.
type Remembered struct {
	Agent AgentID `json:"agent"`
	Tool  string  `json:"tool"`
	// Decision is `granted` or `denied`.
	Decision string `json:"decision"`
	// Text is what the model reads of a denial.
	Text   string `json:"text,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Person is the person who decided. Nil: no person is named.
	Person *Person `json:"person,omitempty"`
	// N is the number of the event that recorded it.
	N EventNumber `json:"n"`
	// At is the time of that event.
	At time.Time `json:"at,omitzero"`
}

// Timer is a scheduled input of an agent: a line of the view timers.
type Timer struct {
	Agent AgentID `json:"agent"`
	// Timer is the name of the timer.
	Timer string `json:"timer"`
	// Next is when the input is due.
	Next time.Time `json:"next"`
	// Cron is the cron line of a repeated input. Empty: it is not repeated.
	Cron string `json:"cron,omitempty"`
	// Zone is the time zone of the cron line. Empty: UTC.
	Zone string `json:"tz,omitempty"`
	// Input is the id of the input that has set it.
	Input string `json:"input,omitempty"`
	// Policy is that of the input. Empty: `queue`.
	Policy Policy `json:"policy,omitempty"`
	// Text is the text of the input.
	Text string `json:"text"`
	// N is the number of its newest timer.set.
	N EventNumber `json:"n"`
	// Set is the time of that event.
	Set time.Time `json:"set"`
}

// ParseQuery reads a query's JSON body.
func ParseQuery(body []byte) (Query, error) {
	var q Query
	if err := codec.CheckJSONDepth(body); err != nil {
		return q, Refuse(BadInput, "the query is %v", err)
	}
	if err := json.Unmarshal(body, &q); err != nil {
		if text := codec.WrongType(err); text != "" {
			return q, Refuse(BadInput, "%s", text)
		}
		return q, Refuse(BadInput, "a query is JSON such as {\"view\":\"history\"}: %v", err)
	}
	if err := knownFields(body); err != nil {
		return q, err
	}
	if q.Limit < 0 {
		return q, Refuse(BadInput, "limit is %d: it must be positive", q.Limit)
	}
	if q.Tail < 0 {
		return q, Refuse(BadInput, "tail is %d: it must be positive", q.Tail)
	}
	if q.Rate < 0 {
		return q, Refuse(BadInput, "rate is %d: it must be positive", q.Rate)
	}
	return q, nil
}

// knownFields refuses a field that this version does not know: an answer that ignores a
// filter looks like an answer to another query.
func knownFields(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(new(Query))
	if err == nil {
		return nil
	}
	field, found := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !found {
		return Refuse(BadInput, "the query cannot be read: %v", err)
	}
	var names []string
	for f := range reflect.TypeFor[Query]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return Refuse(BadInput, "a query has no field %s here: leave it out, or ask a node of a version that has it; the fields are %s", field, strings.Join(names, ", "))
}
