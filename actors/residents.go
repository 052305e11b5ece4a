package actors

import (
	"cmp"
	"container/list"
	"sync"
	"time"
)

// residents bounds the agents in a node's memory, by their number, by the bytes that they
// take, and by how long they have had nothing to do. What is too much leaves, least recently
// used first; an agent that is at work stays. Safe for concurrent use.
type residents struct {
	most      int
	mostBytes int64
	idleAfter time.Duration

	mu sync.Mutex
	// memory is how many agents are in memory; count and bytes leave out those that were asked
	// to leave.
	memory, count int
	bytes         int64
	idle          list.List   // of *resident, least recently used first
	timer         *time.Timer // for the first of idle; nil: none is
}

// newResidents returns the bounds that cfg sets, or the default ones.
func newResidents(cfg Config) residents {
	most, bytes := DefaultMaxAgents()
	return residents{most: cmp.Or(cfg.MaxAgents, most), mostBytes: cmp.Or(cfg.AgentMemory, bytes), idleAfter: cmp.Or(cfg.IdleAfter, DefaultIdleAfter)}
}

// resident is an agent in memory.
type resident struct {
	leave func() // sends the agent a passivate
	bytes int64
	used  time.Time
	at    *list.Element // in residents.idle; nil: it is at work, or was asked to leave
	asked bool
}

// enter counts an agent more.
func (s *residents) enter() {
	s.mu.Lock()
	s.memory++
	s.count++
	leaving := s.surplus()
	s.mu.Unlock()
	ask(leaving)
}

// exit counts an agent less.
func (s *residents) exit(r *resident) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlist(r)
	s.memory--
	s.count--
	s.bytes -= r.bytes
	if s.memory == 0 && s.timer != nil && s.timer.Stop() {
		s.timer = nil // its function would keep a closed node in memory
	}
}

// note records that an agent handled a message, what it takes now, in bytes, and whether it
// has anything to do.
func (s *residents) note(r *resident, bytes int64, idle bool) {
	s.mu.Lock()
	s.unlist(r)
	s.bytes += bytes - r.bytes
	r.bytes = bytes
	if idle {
		r.used = time.Now()
		r.at = s.idle.PushBack(r)
	}
	leaving := s.surplus()
	s.mu.Unlock()
	ask(leaving)
}

// asks reports whether the agent is asked to leave. What it handled since it was asked has
// taken that back.
func (s *residents) asks(r *resident) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.asked
}

// inMemory returns how many agents are in memory.
func (s *residents) inMemory() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory
}

// unlist takes an agent out of the list, or back from those that were asked. Hold mu.
func (s *residents) unlist(r *resident) {
	if r.at != nil {
		s.idle.Remove(r.at)
		r.at = nil
	}
	if r.asked {
		r.asked = false
		s.count++
		s.bytes += r.bytes
	}
}

// surplus returns the idle agents that are too many, take too much or have been idle for too
// long, and counts them as asked. Hold mu.
func (s *residents) surplus() (leaving []*resident) {
	now := time.Now()
	for first := s.idle.Front(); first != nil; first = s.idle.Front() {
		r := first.Value.(*resident)
		expires := r.used.Add(s.idleAfter)
		if s.count <= s.most && s.bytes <= s.mostBytes && now.Before(expires) {
			s.wait(expires.Sub(now))
			return leaving
		}
		s.unlist(r)
		r.asked = true
		s.count--
		s.bytes -= r.bytes
		leaving = append(leaving, r)
	}
	return leaving
}

// wait has the list examined again when its first agent has been idle for too long. Hold mu.
func (s *residents) wait(d time.Duration) {
	if s.timer != nil {
		return
	}
	s.timer = time.AfterFunc(d, func() {
		s.mu.Lock()
		s.timer = nil
		leaving := s.surplus()
		s.mu.Unlock()
		ask(leaving)
	})
}

// ask asks agents to leave memory.
func ask(leaving []*resident) {
	for _, r := range leaving {
		r.leave()
	}
}
