package providertest

import (
	"bytes"
	"net/http"
	"slices"

	"github.com/reprise-dev/reprise/providers/scripted"
)

// Refusals returns the requests that checks of the imitated server refused, in
// the order they came. Without an imitation there are none.
func (s *Server) Refusals() []Refusal {
	if s.model == nil {
		return nil
	}
	s.model.mu.Lock()
	defer s.model.mu.Unlock()
	return slices.Clone(s.model.refusals)
}

// imitate answers one request as the imitated server does.
func (s *Server) imitate(w http.ResponseWriter, r *http.Request, req *Request, held *scripted.Gate) {
	q, refusal := s.model.admit(r, req)
	if refusal != nil {
		s.model.record(*refusal, req.Number)
		contentType := "application/json"
		if !bytes.HasPrefix(refusal.Body, []byte("{")) && !bytes.HasPrefix(refusal.Body, []byte("[")) {
			contentType = "text/plain"
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(refusal.Status)
		_, _ = w.Write(refusal.Body) // the client may be gone
		return
	}
	if held.Wait(r.Context()) != nil {
		return
	}
	a := s.script(req).translated()
	a.as = s.model.word(q, a, req.Number)
	a.Whole = a.Whole || q.body["stream"] != true
	send(w, r, req, a)
}

// admit reads a request, or refuses it.
func (m *imitation) admit(r *http.Request, req *Request) (*asked, *Refusal) {
	profile := m.endpoint(r)
	if profile == nil {
		return nil, m.turnAway("endpoint", "no such endpoint: "+r.Method+" "+r.URL.Path, http.StatusNotFound)
	}
	q, err := m.read(r, req, profile)
	if err != nil {
		return nil, m.turnAway("body", "the body cannot be read: "+err.Error(), http.StatusBadRequest)
	}
	return q, q.refuse()
}

// endpoint returns the profile of the API that r asks for, nil if it is none.
func (m *imitation) endpoint(r *http.Request) *fixture {
	for _, base := range m.Bases {
		switch {
		case r.Method != http.MethodPost:
		case r.URL.Path == base+"/chat/completions":
			return &m.fixture
		case r.URL.Path == base+"/responses":
			return m.Responses
		case r.URL.Path == base+"/messages":
			return m.Messages
		}
	}
	return nil
}

// word returns a as the API that was asked words it.
func (m *imitation) word(q *asked, a Answer, number int) wording {
	switch q.profile {
	case m.Responses:
		return m.response(q, a, number)
	case m.Messages:
		return m.message(q, a, number)
	}
	return m.reply(q, a, number)
}

func (m *imitation) turnAway(check, message string, status int) *Refusal {
	return &Refusal{Check: check, Status: status, Body: m.failure("error", message, status, nil)}
}

func (m *imitation) record(r Refusal, number int) {
	r.Number = number
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusals = append(m.refusals, r)
}
