//go:build unix

package clustertest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/providertest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// holds are gates that hold some of those who come from the nodes.
type holds[T any] struct {
	mu   sync.Mutex
	list []hold[T]
}

type hold[T any] struct {
	match func(T) bool
	gate  *scripted.Gate
}

func (h *holds[T]) add(match func(T) bool) *scripted.Gate {
	h.mu.Lock()
	defer h.mu.Unlock()
	gate := scripted.NewGate()
	h.list = append(h.list, hold[T]{match, gate})
	return gate
}

// of is the gate that one must wait at, or nil.
func (h *holds[T]) of(one T) *scripted.Gate {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, held := range h.list {
		if held.match(one) {
			return held.gate
		}
	}
	return nil
}

// ModelCall is a call of the model as it comes.
type ModelCall struct {
	// Node is the process that makes it: the node's name and the number of its life,
	// as [Node.Process] has it.
	Node string
	// Input is the id in the newest text of a user, Step how many steps of its plan
	// are done.
	Input string
	Step  int
}

// HoldModel holds every call of the model that match says so of, before its first
// byte, until the gate is released. match may be called from many goroutines.
func (w *World) HoldModel(match func(ModelCall) bool) *scripted.Gate { return w.model.holds.add(match) }

// HoldShop holds every visit at the shop that match says so of, before it has an
// effect, until the gate is released. match may be called from many goroutines.
func (w *World) HoldShop(match func(Visit) bool) *scripted.Gate { return w.shop.holds.add(match) }

// Reached waits until a gate is reached or instead returns true, and reports whether the gate was reached.
func (w *World) Reached(gate *scripted.Gate, instead func() bool) (come bool) {
	w.t.Helper()
	w.Eventually("somebody comes to the gate", func() bool {
		select {
		case <-gate.Reached():
			come = true
		default:
		}
		return come || instead()
	})
	return come
}

// model is what agents ask: it does what the newest text of a user says, and keeps
// nothing, so that it does not matter which of its answers were lost.
type model struct {
	server *providertest.Server
	holds  holds[ModelCall]
}

func openModel() (*model, error) {
	m := new(model)
	var err error
	m.server, err = providertest.Start(m.answer, providertest.Config{Forget: true})
	return m, err
}

func (m *model) url() string { return m.server.URL }
func (m *model) close()      { _ = m.server.Close() }

func (m *model) answer(r *providertest.Request) providertest.Answer {
	var id string
	var p plan
	step, position := 0, 0
	var words []string
	for _, item := range r.Chat().Messages {
		switch {
		case item.Role == "user":
			id, p = readText(item.Text())
			step, position, words = 0, 0, []string{"done " + id + ":"}
		case len(item.ToolCalls) > 0:
			step, position = step+1, position+len(item.ToolCalls)
		case item.Role == "tool" && strings.HasPrefix(item.Text(), "done "): // of a helper
			words = append(words, "("+item.Text()+")")
		case item.Role == "tool":
			words = append(words, item.Text())
		}
	}
	answer := scripted.Say(strings.Join(words, " "))
	if step < len(p) {
		answer = scripted.Ask()
		for i, word := range p[step] {
			name, text := arguments(word, id, position+i)
			answer.Calls = append(answer.Calls, scripted.Call{Name: name, Arguments: text})
		}
	}
	answer.Usage = messages.Usage{Input: 10, Output: 3}
	answer.Gate = m.holds.of(ModelCall{Node: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), Input: id, Step: step})
	return providertest.Answer{Step: answer}
}

// Visit is a tool's visit at the shop.
type Visit struct {
	// Node is the process that it comes from, as [ModelCall] has it.
	Node string
	Tool string
	// Key is the call's idempotency key.
	Key     string
	Attempt int
	Agent   string
	// Input is the id in the text that the call is for, Position its place in the plan.
	Input    string
	Position int
}

// shop is where tools have their effects. It takes each key once.
type shop struct {
	http  *http.Server
	at    string
	holds holds[Visit]

	mu     sync.Mutex
	visits []Visit // that had their answer, or would have
}

func openShop() (*shop, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &shop{at: "http://" + l.Addr().String()}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.http.Serve(l) }() // ends with close
	return s, nil
}

func (s *shop) url() string { return s.at }
func (s *shop) close()      { _ = s.http.Close() }

// ServeHTTP takes a visit.
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var v Visit
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if s.holds.of(v).Wait(r.Context()) != nil {
		return
	}
	s.mu.Lock()
	s.visits = append(s.visits, v)
	s.mu.Unlock()
	_, _ = fmt.Fprint(w, result(v.Tool, v.Input, v.Position)) // a process that is gone does not receive it
}

func (s *shop) all() []Visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.visits)
}

// Visits are those at the shop so far that had an answer, for the input with this
// id in its text.
func (w *World) Visits(id string) []Visit {
	return slices.DeleteFunc(w.shop.all(), func(v Visit) bool { return v.Input != id })
}
