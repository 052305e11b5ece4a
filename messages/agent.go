package messages

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// DefaultTenant is the tenant of an address written as kind/key.
const DefaultTenant = "default"

// AgentID is the address of one agent: its tenant, the definition that it follows (Kind)
// and the instance of that definition (Key). The zero value addresses nothing. Values
// compare with ==.
type AgentID struct {
	Tenant string `json:"tenant"`
	Kind   string `json:"kind"`
	Key    string `json:"key"`
}

// ParseAgentID reads kind/key or tenant/kind/key. The error names the first
// character that an address may not have.
func ParseAgentID(s string) (AgentID, error) {
	parts := strings.Split(s, "/")
	var a AgentID
	switch len(parts) {
	case 2:
		a = AgentID{DefaultTenant, parts[0], parts[1]}
	case 3:
		a = AgentID{parts[0], parts[1], parts[2]}
	default:
		return AgentID{}, Refuse(BadAddress, "agent address %q: write kind/key or tenant/kind/key", s)
	}
	if err := a.Validate(); err != nil {
		return AgentID{}, err
	}
	return a, nil
}

// Validate returns an error unless every token of the address may be used in a subject.
func (a AgentID) Validate() error {
	for _, t := range [...]struct{ what, token string }{{"tenant", a.Tenant}, {"kind", a.Kind}, {"key", a.Key}} {
		if err := ValidateToken(t.what, t.token); err != nil {
			return err
		}
	}
	return nil
}

// ValidateToken returns an error unless token is 1 to 128 bytes of A-Z a-z 0-9 _ = -. The
// error shows the offending character.
func ValidateToken(what, token string) error {
	if token == "" {
		return Refuse(BadAddress, "%s is empty: use 1 to %d of A-Z a-z 0-9 _ = -", what, maxToken)
	}
	if len(token) > maxToken {
		return Refuse(BadAddress, "%s is %d bytes long: the limit is %d", what, len(token), maxToken)
	}
	for i, r := range token {
		if !tokenRune(r) {
			return Refuse(BadAddress, "%s %q has %q at byte %d: only A-Z a-z 0-9 _ = - are allowed", what, token, r, i)
		}
	}
	return nil
}

func tokenRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '=' || r == '-'
}

// String returns the address as a person writes it: without the default tenant.
func (a AgentID) String() string {
	if a.Tenant == DefaultTenant {
		return a.Kind + "/" + a.Key
	}
	return a.Full()
}

// Full returns the address with its tenant, always three tokens.
func (a AgentID) Full() string { return a.Tenant + "/" + a.Kind + "/" + a.Key }

func (a AgentID) appendFull(b []byte) []byte {
	b = append(append(b, a.Tenant...), '/')
	return append(append(append(b, a.Kind...), '/'), a.Key...)
}

// MarshalText returns the address as String does.
func (a AgentID) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what ParseAgentID reads.
func (a *AgentID) UnmarshalText(b []byte) error {
	parsed, err := ParseAgentID(string(b))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

// Partitions is the number of partitions that agents are spread over. It is
// part of every stored subject and never changes.
const Partitions = 64

// Partition is the number of a partition, 0 to 63.
type Partition uint8

// Partition returns the agent's partition: FNV-1a 32 over tenant, kind and key without
// separators, modulo 64. The subject transform partition(64,…) of nats-server computes
// the same.
func (a AgentID) Partition() Partition {
	h := fnv.New32a()
	for _, t := range [...]string{a.Tenant, a.Kind, a.Key} {
		_, _ = h.Write([]byte(t)) // a hash never fails
	}
	return Partition(h.Sum32() % Partitions)
}

// String returns the partition as it is written in a subject.
func (p Partition) String() string { return fmt.Sprint(uint8(p)) }

// AgentPhase is what an agent is doing.
type AgentPhase string

// The phases.
const (
	PhaseIdle    AgentPhase = "idle"    // no turn runs
	PhaseRunning AgentPhase = "running" // a turn runs
	PhasePaused  AgentPhase = "paused"  // a turn waits for a person
	PhaseDeleted AgentPhase = "deleted" // it was deleted, and not created again since
)

// AgentPhases returns all phases.
func AgentPhases() []AgentPhase {
	return []AgentPhase{PhaseIdle, PhaseRunning, PhasePaused, PhaseDeleted}
}

// Epoch numbers the owners of a partition. A frame of an epoch below the newest owner's
// was written by an owner that has been replaced. Zero: no owner.
type Epoch uint64

// EventNumber is the number of an event in its agent's log: 1, 2, 3 … without gaps. Zero:
// before the first.
type EventNumber uint64

// TurnID names a turn within its agent: "t" and the number of its
// turn.started event. Empty: no turn.
type TurnID string

// TurnAt returns the id of the turn that starts with event n.
func TurnAt(n EventNumber) TurnID {
	return TurnID(strconv.AppendUint(append(make([]byte, 0, 24), 't'), uint64(n), 10))
}

// Start returns the event that starts the turn. 0: the id is not one that TurnAt returns.
func (t TurnID) Start() EventNumber {
	digits, ok := strings.CutPrefix(string(t), "t")
	n, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil {
		return 0
	}
	return EventNumber(n)
}

// CallID names a model call or a tool call within its agent.
type CallID string
