package messages

import "encoding/json"

// HeaderNext, on the empty message that ends a view, is the event (or line)
// that the next page begins with. Without it there is no next page.
const HeaderNext = "Reprise-Next"

// Query asks for a view of an agent or of a tenant. The answer is streamed:
// JSON lines, several to a message, then an empty message.
type Query struct {
	// View is show, events, history, state or replay of an agent; agents or
	// dlq of a tenant.
	View string `json:"view"`
	// At asks for the view as of an event. Zero: the newest.
	At EventNumber `json:"at,omitempty"`
	// From is the first event (or line) wanted.
	From EventNumber `json:"from,omitempty"`
	// Limit is the most lines wanted in one page. Zero: the server's choice.
	Limit int `json:"limit,omitempty"`
	// Follow goes on with what happens, for half a minute at a time.
	Follow bool `json:"follow,omitempty"`
	// Kind and Phase choose agents of a tenant.
	Kind  string `json:"kind,omitempty"`
	Phase string `json:"phase,omitempty"`
}

// ParseQuery reads a query's JSON body.
func ParseQuery(body []byte) (Query, error) {
	var q Query
	if err := checkJSONDepth(body); err != nil {
		return q, Refuse(BadInput, "the query is %v", err)
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return q, Refuse(BadInput, "a query is JSON such as {\"view\":\"history\"}: %v", err)
	}
	if q.Limit < 0 {
		return q, Refuse(BadInput, "limit is %d: it must be positive", q.Limit)
	}
	return q, nil
}
