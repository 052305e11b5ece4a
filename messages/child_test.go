package messages

import (
	"bytes"
	"strings"
	"testing"
)

func noHeader(string) string { return "" }

// What one agent gives another comes back from its body as it was, on the subject
// of agents alone, and nobody else can take its id beforehand.
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
			t.Errorf("as a person's command: %v", err)
		}
		got, err := ParsePeer(testAgent, noHeader, body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		again, _ := Body(got)
		if string(again) != string(body) {
			t.Errorf("%s comes back as %s", body, again)
		}
		if _, err := ParseInput(testAgent, noHeader, body); err == nil || !strings.Contains(err.Error(), "only inputs are accepted here") {
			t.Errorf("as an input: %v", err)
		}
		if _, err := ParseInput(testAgent, noHeader, []byte(`{"id":"`+IDOf(c)+`","content":"hello"}`)); err == nil {
			t.Errorf("an input may take the id %s", IDOf(c))
		}
		if _, err := ParseCommand(testAgent, noHeader, []byte(`{"type":"abort","id":"`+IDOf(c)+`"}`)); err == nil {
			t.Errorf("a command may take the id %s", IDOf(c))
		}
	}
}

// Only an agent may forward a decision.
func TestPassedDecisions(t *testing.T) { // A45, A103
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
			t.Errorf("%s comes as %+v, %v", body, got, err)
		}
		named := bytes.Replace(body, []byte(`,"for":"default/boss/b"`), []byte(`,"person":{"name":"a\u001b\u202en`+strings.Repeat("n", MaxPerson)+`","account":"board\n"}`), 1)
		if by, err := ParsePeer(testAgent, noHeader, named); err != nil || *DecidedBy(by) != (Person{Name: "a" + strings.Repeat("n", MaxPerson-1), Account: "board", Claimed: true}) {
			t.Errorf("decided by %+v, %v", DecidedBy(by), err)
		}
		for _, person := range []string{`{"name":"ann"}`, `{}`} {
			alone := bytes.Replace(body, []byte(`,"for":"default/boss/b"`), []byte(`,"person":`+person), 1)
			if _, err := ParseCommand(testAgent, noHeader, alone); err == nil || !strings.Contains(err.Error(), HeaderPerson) {
				t.Errorf("a sender gives %s: %v", alone, err)
			}
		}
		if _, err := ParseCommand(testAgent, noHeader, body); err == nil || !strings.Contains(err.Error(), "forwards a decision") {
			t.Errorf("as a person's command: %v", err)
		}
	}
}

// A child's address fits into a subject, and is the same for the same call alone.
func TestChildrenAreFoundAgain(t *testing.T) { // A71
	boss := AgentID{"acme", "boss", strings.Repeat("k", maxToken)}
	child := ChildOf(boss, "leaf", "t3", "call of any kind ☃")
	if err := child.Validate(); err != nil || child.Tenant != "acme" || child.Kind != "leaf" {
		t.Errorf("%s: %v", child, err)
	}
	if child != ChildOf(boss, "leaf", "t3", "call of any kind ☃") {
		t.Error("another try is another child")
	}
	for _, other := range []AgentID{ChildOf(boss, "leaf", "t3", "c"), ChildOf(boss, "leaf", "t4", "call of any kind ☃"), ChildOf(testAgent, "leaf", "t3", "call of any kind ☃")} {
		if other.Key == child.Key {
			t.Error("two calls have one child")
		}
	}
}
