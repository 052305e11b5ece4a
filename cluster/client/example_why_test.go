package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// A client on a connection that the program has already. Close closes the connection, too.
func ExampleNew() {
	nc, err := nats.Connect(node().URL())
	if err != nil {
		log.Fatal(err)
	}
	c := client.New(nc, "") // the root: reprise
	defer c.Close()
	id, err := c.Send(context.Background(), "assistant/new", messages.Input{ID: "mail-1", Content: messages.TextContent("Hello")})
	fmt.Println(id, err)
	// Output: mail-1 <nil>
}

// The log names the person in whose name an input, a command or a decision was sent.
func ExampleClient_As() {
	c := connect()
	defer c.Close()
	ask(c.As("ann"), "assistant/as", "Hello")
	for ev, err := range c.Events(context.Background(), "assistant/as", client.Only(messages.Query{Turn: "t4"})) {
		if err != nil {
			log.Fatal(err)
		}
		if ev.Person != nil {
			fmt.Println(ev.N, ev.Type, ev.Person.Name)
			break
		}
	}
	// Output: 3 input.accepted ann
}

// Why an event happened: the causes back to the input, and what is evident from them.
func ExampleClient_Why() {
	c := connect()
	defer c.Close()
	ask(c, "support/why", "Refund 100 cents for order 8")
	ask(c, "support/why", "Refund 100 cents for order 8")
	why, err := c.Why(context.Background(), "support/why", 17)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(why.Chain[0].Agent, why.Chain[0].N)
	fmt.Println(why.Findings[0].Kind, why.Findings[0].Events[0].N)
	// Output:
	// support/why 19
	// resent 7
}

// Events of all agents of a tenant that hold a text or an id. The index is a moment behind the log, so that
// this example asks until the index has caught up.
func ExampleClient_Find() {
	c := connect()
	defer c.Close()
	ask(c, "support/find", "Refund 100 cents for order 4711")
	for range 1000 {
		for found, err := range c.Find(context.Background(), "default", "refund 4711", client.Only(messages.Query{Text: "refund 4711"})) {
			if err != nil {
				break // some partitions are behind
			}
			if found.Agent.Key == "find" && found.N == 3 {
				fmt.Println(found.Agent, found.N, found.What, found.Snippet)
				return
			}
		}
	}
	// Output: support/find 3 input Refund 100 cents for order 4711
}

// Frames as they are stored: export writes them to a file.
func ExampleClient_Frames() {
	c := connect()
	defer c.Close()
	ask(c, "assistant/frames", "Hello")
	agent, err := messages.ParseAgentID("assistant/frames")
	if err != nil {
		log.Fatal(err)
	}
	for line, err := range c.Frames(context.Background(), "assistant/frames") {
		if err != nil {
			log.Fatal(err)
		}
		if line.Definition != "" {
			fmt.Println("a definition, before event", line.First)
			continue
		}
		frame, err := messages.DecodeFrame(agent, line.Frame)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("events", frame.First, "to", frame.Last())
	}
	// Output:
	// a definition, before event 1
	// events 1 to 5
	// events 6 to 7
}

// What happened to an agent, a row for each thing that a person thinks of.
func ExampleClient_Timeline() {
	c := connect()
	defer c.Close()
	ask(c, "assistant/timeline", "What is 17 times 3?")
	for row, err := range c.Timeline(context.Background(), "assistant/timeline") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row.N, row.Kind, row.Status)
	}
	// Output:
	// 1 agent created
	// 2 agent configured
	// 3 input started
	// 4 turn completed
	// 5 model 30 tokens in, 4 out
	// 7 tool completed
	// 10 model 35 tokens in, 5 out
}

// The agents of a tenant: here those of one kind.
func ExampleClient_Agents() {
	c := connect()
	defer c.Close()
	ask(c, "dated/one", "Hello")
	for a, err := range c.Agents(context.Background(), "default", client.Only(messages.Query{Kind: "dated"})) {
		if err != nil {
			log.Fatal(err)
		}
		if a.Agent.Key == "one" {
			fmt.Println(a.Agent, a.Phase)
		}
	}
	// Output: dated/one idle
}
