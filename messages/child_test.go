package messages

import (
	"bytes"
	"strings"
	"testing"
)

func noHeader(string) string { return "" }

// A command between agents is parsed from its body unchanged. Only ParsePeer accepts it.
// Inputs and commands of other senders cannot use its id.
func TestCommandsBetweenAgents(t *testing.T) {
	parent := Parent{Caller: Caller{Agent: "default/boss/b", Turn: "t3", Call: "c1"}, Above: []Caller{{Agent: "default/root/r", Turn: "t4", Call: "c<1>"}}, Limits: Limits{MaxTokens: 7}}
	for _, c := range []Command{
		Task{ID: TaskID(parent.Caller), Content: TextContent("do <it>"), Parent: parent},
		CancelChild{ID: CancelID(TaskID(parent.Caller)), Input: TaskID(parent.Caller), Parent: parent, Reason: "enough"},
		Report{ID: ReportID("i", 3), Turn: "t3", Call: "c1", Child: "default/leaf/l", N: 3, What: ReportWaiting, Busy: true, Used: Used{Usage: Usage{Input: 1, Output: 2}, Cost: 4, Tokens: 5},
			Waiting: []Wait{{Agent: "default/leaf/l", Turn: "t1", Call: "c", Tool: "pay", Kind: WaitApproval, Arguments: "{}", ArgsHash: "h"}}},
		DecisionEffect{ID: Derived("report:", "a"), Decision: Derived("for:", "d"), Refused: Conflict, Message: "it was denied before"},
	} {
		body, err := Body(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseCommand(testAgent, noHeader, body); err == nil || !strings.Contains(err.Error(), "agents give one another") { // A103
			t.Errorf("ParseCommand: got error %v, want a refusal", err)
		}
		got, err := ParsePeer(testAgent, noHeader, body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		again, _ := Body(got)
		if string(again) != string(body) {
			t.Errorf("body: got %s, want %s", again, body)
		}
		if _, err := ParseInput(testAgent, noHeader, body); err == nil || !strings.Contains(err.Error(), "only inputs are accepted here") {
			t.Errorf("ParseInput: got error %v, want a refusal", err)
		}
		if _, err := ParseInput(testAgent, noHeader, []byte(`{"id":"`+IDOf(c)+`","content":"hello"}`)); err == nil {
			t.Errorf("input with the id %s: got no error, want one", IDOf(c))
		}
		if _, err := ParseCommand(testAgent, noHeader, []byte(`{"type":"abort","id":"`+IDOf(c)+`"}`)); err == nil {
			t.Errorf("command with the id %s: got no error, want one", IDOf(c))
		}
	}
}

// Only an agent may forward a decision and name the person who made it.
func TestForwardedDecisions(t *testing.T) { // A45, A103
	text := "no"
	for _, c := range []Command{
		Approve{ID: Derived("for:", "a"), Call: "c1", Forwarded: Forwarded{For: "default/boss/b"}},
		Deny{ID: Derived("for:", "b"), Call: "c1", Text: &text, Forwarded: Forwarded{For: "default/boss/b"}},
		Decide{ID: Derived("for:", "c"), Call: "c1", Outcome: OutcomeFailed, Forwarded: Forwarded{For: "default/boss/b"}},
	} {
		body, err := Body(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParsePeer(testAgent, noHeader, body)
		if err != nil || ForwardedBy(got).For != "default/boss/b" || DecidedBy(got) != nil {
			t.Errorf("%s: got %+v, error %v, want it forwarded for default/boss/b", body, got, err)
		}
		named := bytes.Replace(body, []byte(`,"for":"default/boss/b"`), []byte(`,"person":{"name":"a\u001b\u202en`+strings.Repeat("n", MaxPerson)+`","account":"board\n"}`), 1)
		if by, err := ParsePeer(testAgent, noHeader, named); err != nil || *DecidedBy(by) != (Person{Name: "a" + strings.Repeat("n", MaxPerson-1), Account: "board", Claimed: true}) {
			t.Errorf("decided by: got %+v, error %v", DecidedBy(by), err)
		}
		for _, person := range []string{`{"name":"ann"}`, `{}`} {
			alone := bytes.Replace(body, []byte(`,"for":"default/boss/b"`), []byte(`,"person":`+person), 1)
			if _, err := ParseCommand(testAgent, noHeader, alone); err == nil || !strings.Contains(err.Error(), HeaderPerson) {
				t.Errorf("%s: got error %v, want one that names %s", alone, err, HeaderPerson)
			}
		}
		if _, err := ParseCommand(testAgent, noHeader, body); err == nil || !strings.Contains(err.Error(), "forwards a decision") {
			t.Errorf("ParseCommand: got error %v, want a refusal", err)
		}
	}
}

// The address of a child is valid in a subject. Equal calls have equal addresses, others do not.
func TestChildOf(t *testing.T) { // A71
	boss := AgentID{"acme", "boss", strings.Repeat("k", maxToken)}
	child := ChildOf(boss, "leaf", "t3", "call of any kind ☃")
	if err := child.Validate(); err != nil || child.Tenant != "acme" || child.Kind != "leaf" {
		t.Errorf("child: got %s, error %v", child, err)
	}
	if child != ChildOf(boss, "leaf", "t3", "call of any kind ☃") {
		t.Error("got two children for the same call, want one")
	}
	for _, other := range []AgentID{ChildOf(boss, "leaf", "t3", "c"), ChildOf(boss, "leaf", "t4", "call of any kind ☃"), ChildOf(testAgent, "leaf", "t3", "call of any kind ☃")} {
		if other.Key == child.Key {
			t.Errorf("got the key %s for two calls, want different ones", child.Key)
		}
	}
}
