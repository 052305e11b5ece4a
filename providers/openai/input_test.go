package openai_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/profile"
)

// What cannot go back as it came is rewritten, with the whole answer that it is part of.
func TestResponsesInput(t *testing.T) {
	text := func(role, s string) string { return `{"role":"` + role + `","content":"` + s + `"}` }
	user, result := text("user", "hi"), `{"type":"function_call_output","call_id":"call_1","output":"1"}`
	const plainCall = `{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"}`
	const again = `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}","status":"completed"}`
	const rewritten = `{"role":"assistant","content":"Done.","phase":"final_answer"}`
	of := func(kind string) string { return `{"type":"` + kind + `","id":"x_` + kind + `","status":"completed"}` }
	noted := func(kind string) string {
		return `{"role":"user","content":"[System note]\n[Here stood an item of type ` + kind + ` from here, which cannot be shown to this model.]"}`
	}
	const sealed = `{"type":"compaction","id":"cmp_1","encrypted_content":"g"}`
	refused := strings.Replace(spoke, `"output_text","text"`, `"refusal","refusal"`, 1)
	bare := strings.Replace(thought, `,"encrypted_content":"gAAA"`, "", 1)
	for _, c := range []struct {
		name   string
		answer []string
		change func(items []messages.Item) []messages.Item
		want   string
	}{
		{"unchanged", []string{thought, spoke, called}, nil, thought + "," + spoke + "," + again},
		{"reasoning that is not encrypted", []string{bare, spoke, called}, nil, rewritten + "," + plainCall},
		{"reasoning alone", []string{thought, spoke, called, thought}, nil, rewritten + "," + plainCall},
		{"cut off", []string{thought, strings.Replace(spoke, "completed", "incomplete", 1), called}, nil, rewritten + "," + plainCall},
		{"two answers", []string{thought, spoke, bare, called}, func(items []messages.Item) []messages.Item {
			items[2].ID, items[3].ID = "resp_2", "resp_2"
			return items
		}, thought + "," + spoke + "," + plainCall},
		{"arguments that a hook has changed", []string{thought, strings.Replace(called, `""`, `"{\"y\":2}"`, 1)}, func(items []messages.Item) []messages.Item {
			items[1].Arguments = `{"x":1}`
			return items
		}, thought + "," + strings.Replace(again, "{}", `{\"x\":1}`, 1)},
		{"a call of its own shell", []string{of("local_shell_call"), called}, nil, noted("local_shell_call") + "," + plainCall},
		{"a call of the shell", []string{of("shell_call"), called}, nil, noted("shell_call") + "," + plainCall},
		{"a call that the server ran", []string{of("shell_call"), of("shell_call_output"), called}, nil, of("shell_call") + "," + of("shell_call_output") + "," + again},
		{"a patch", []string{of("apply_patch_call"), called}, nil, noted("apply_patch_call") + "," + plainCall},
		{"a click", []string{of("computer_call"), called}, nil, noted("computer_call") + "," + plainCall},
		{"a call of another kind", []string{of("custom_tool_call"), called}, nil, noted("custom_tool_call") + "," + plainCall},
		{"a question", []string{of("mcp_approval_request"), called}, nil, noted("mcp_approval_request") + "," + plainCall},
		{"an image that is not stored", []string{thought, `{"type":"image_generation_call","id":"ig_1","result":"AAAA"}`, called}, nil, noted("image_generation_call") + "," + plainCall},
		{"a compaction", []string{searched, sealed, called}, nil, "!" + searched + "," + sealed + "," + again},
		{"a compaction in an answer that is cut off", []string{strings.Replace(spoke, "completed", "incomplete", 1), sealed, called}, nil, "!" + rewritten + "," + sealed + "," + plainCall},
		{"a compaction of another model", []string{sealed, called}, func(items []messages.Item) []messages.Item {
			items[0].Model, items[1].Model = "other", "other"
			return items
		}, noted("compaction") + "," + plainCall},
		{"arguments that are no JSON", []string{strings.Replace(called, `""`, `"oops"`, 1)}, nil, strings.Replace(again, "{}", `{\"not_json\":\"oops\"}`, 1)},
		{"a text that a hook has changed", []string{thought, spoke, called}, func(items []messages.Item) []messages.Item {
			items[1].Content = messages.TextContent("Changed.")
			return items
		}, `{"role":"assistant","content":"Changed.","phase":"final_answer"},` + plainCall},
		{"reasoning that a hook has changed", []string{thought, spoke, called}, func(items []messages.Item) []messages.Item {
			items[0].Content = messages.TextContent("Changed.")
			return items
		}, rewritten + "," + plainCall},
		{"a name that a hook has changed", []string{thought, spoke, called}, func(items []messages.Item) []messages.Item {
			items[2].Name = "g"
			return items
		}, rewritten + "," + strings.Replace(plainCall, `"f"`, `"g"`, 1)},
		{"two items of one id", []string{thought, spoke, strings.Replace(called, "fc_1", "msg_1", 1)}, nil, rewritten + "," + plainCall},
		{"two answers with items of one id", []string{thought, spoke, strings.Replace(thought, "rs_1", "rs_2", 1), strings.Replace(called, "fc_1", "msg_1", 1)}, func(items []messages.Item) []messages.Item {
			items[2].ID, items[3].ID = "resp_2", "resp_2"
			return items
		}, thought + "," + spoke + "," + plainCall},
		{"items without ids", []string{searched, strings.Replace(spoke, `"id":"msg_1",`, "", 1), strings.Replace(called, `"id":"fc_1",`, "", 1)}, nil, searched + "," + strings.Replace(spoke, `"id":"msg_1",`, "", 1) + "," + strings.Replace(again, `"id":"fc_1",`, "", 1)},
		{"a refusal", []string{thought, refused, called}, nil, thought + "," + refused + "," + again},
		{"a refusal that a hook has changed", []string{thought, refused, called}, func(items []messages.Item) []messages.Item {
			items[1].Content = messages.TextContent("Changed.")
			return items
		}, `{"role":"assistant","content":"Changed.","phase":"final_answer"},` + plainCall},
		{"another model", []string{thought, spoke, called}, func(items []messages.Item) []messages.Item {
			for i := range items {
				items[i].Model = "other"
			}
			return items
		}, text("assistant", "Done.") + "," + plainCall},
		{"another API", []string{called}, func(items []messages.Item) []messages.Item {
			items[0].Raw = []byte(`{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}`)
			return items
		}, plainCall},
		{"another provider", []string{thought, thought, called}, func(items []messages.Item) []messages.Item {
			for i := range items {
				items[i].Provider = "there"
			}
			return items
		}, plainCall},
		{"arguments that are an object", []string{strings.Replace(called, `""`, `{"x":1}`, 1)}, nil, strings.Replace(again, "{}", `{\"x\":1}`, 1)},
		{"arguments of null", []string{strings.Replace(called, `""`, "null", 1)}, nil, again},
		{"no arguments", []string{strings.Replace(called, `"arguments":"",`, "", 1)}, nil, `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","status":"completed","arguments":"{}"}`},
		{"no id of a call", []string{strings.Replace(called, `"call_id":"call_1",`, "", 1)}, nil, "?"},
		{"content that is a text", []string{`{"type":"message","role":"assistant","content":"Done."}`, strings.Replace(called, "completed", "incomplete", 1)}, nil, text("assistant", "Done.") + "," + plainCall},
		{"a foreign id", []string{called}, func(items []messages.Item) []messages.Item {
			items[0].CallID = messages.CallID("functions.f:0")
			return items
		}, "?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, requests := clerk(t, viaResponses, completed("resp_1", c.answer...))
			r := ask()
			items := generate(t, p, r).Items
			if c.change != nil {
				items = c.change(items)
			}
			id := items[slices.IndexFunc(items, func(it messages.Item) bool { return it.Type == messages.ItemCall })].CallID
			r.Items = list(r.Items, items, output(id, "1"))
			generate(t, p, r)
			got, want := inputOf(t, *requests, 1), "["+user+","+c.want+","+result+"]"
			if later, cut := strings.CutPrefix(c.want, "!"); cut {
				want = "[" + later + "," + result + "]"
			}
			if c.want == "?" {
				if strings.Contains(got, "functions.f:0") || strings.Count(got, strings.Split(strings.Split(got, `"call_id":"`)[1], `"`)[0]) != 2 {
					t.Errorf("sent %s", got)
				}
				return
			}
			if got != want {
				t.Errorf("sent %s\nwant %s", got, want)
			}
			if omits := strings.Contains((*requests)[1], "[The reasoning of there is left out"); omits != (c.name == "another provider") {
				t.Errorf("sent %s", (*requests)[1])
			}
		})
	}
}

// Notes that are not the user's have no mark.
func TestResponsesNotes(t *testing.T) {
	p, requests := clerk(t, profile.Rules{API: profile.Responses, Notes: profile.Developer}, completed("resp_1", spoke))
	generate(t, p, ask(messages.Text(messages.RoleDeveloper, "mind")))
	if got := inputOf(t, *requests, 0); !strings.HasSuffix(got, `,{"role":"developer","content":"mind"}]`) {
		t.Errorf("sent %s", got)
	}
}

// Results follow the calls of an answer, which stays whole, and what came in between follows them.
func TestResponsesOrder(t *testing.T) {
	second := strings.NewReplacer("fc_1", "fc_2", "call_1", "call_2", `""`, `"{}"`).Replace(called)
	p, requests := clerk(t, viaResponses, completed("resp_1", called, searched, second))
	r := ask()
	r.Items = list(r.Items, generate(t, p, r).Items, messages.Text(messages.RoleUser, "meanwhile"), output("call_2", "2"))
	if e := fail(t, p, r); e.Kind != providers.BadRequest || !strings.Contains(e.Message, "no result for call call_1") || len(*requests) != 1 {
		t.Errorf("%v after %d requests", e, len(*requests))
	}
	r.Items = list(r.Items, output("call_1", "1"))
	generate(t, p, r)
	want := `[{"role":"user","content":"hi"},` + strings.Replace(called, `""`, `"{}"`, 1) + "," + searched + "," + second +
		`,{"type":"function_call_output","call_id":"call_2","output":"2"},{"type":"function_call_output","call_id":"call_1","output":"1"},{"role":"user","content":"meanwhile"}]`
	if got := inputOf(t, *requests, 1); got != want {
		t.Errorf("sent %s\nwant %s", got, want)
	}
}

// A server that stores answers is sent what is new, as long as it remembers and the history
// is what it was.
func TestResponsesStored(t *testing.T) {
	bare := strings.Replace(thought, `,"encrypted_content":"gAAA"`, "", 1)
	forgotten := []string{"400", `{"error":{"message":"Previous response with id 'resp_2' not found.","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}`}
	p, requests := clerk(t, viaResponses, completed("resp_1", bare, called), completed("resp_2", spoke), forgotten, completed("resp_3", spoke), completed("resp_4", spoke))
	r := ask()
	r.Settings.ExtraBody = map[string]json.RawMessage{"store": json.RawMessage("true")}
	turn := func(more ...messages.Item) {
		t.Helper()
		r.Items = list(r.Items, more)
		r.Items = list(r.Items, generate(t, p, r).Items)
	}
	more := messages.Text(messages.RoleUser, "more")
	turn()
	turn(output("call_1", "1"))
	turn(more) // is forgotten
	r.Items = slices.Delete(r.Items, 0, 1)
	turn(more) // after a change
	const hi, added = `{"role":"user","content":"hi"}`, `{"role":"user","content":"more"}`
	const result = `{"type":"function_call_output","call_id":"call_1","output":"1"}`
	call := strings.Replace(called, `"arguments":""`, `"arguments":"{}"`, 1)
	whole := hi + "," + bare + "," + call + "," + result + "," + spoke + "," + added
	const again = `{"role":"assistant","content":"Done.","phase":"final_answer"}` // of an id that an item has
	for i, want := range []struct{ previous, input string }{
		{"", hi}, {"resp_1", result}, {"resp_2", added}, {"", whole}, {"", strings.TrimPrefix(whole, hi+",") + "," + again + "," + added},
	} {
		got := inputOf(t, *requests, i)
		if got != "["+want.input+"]" {
			t.Errorf("request %d sent %s\nwant %s", i+1, got, want.input)
		}
		if named := strings.Contains((*requests)[i], `"previous_response_id":"`+want.previous+`"`); named != (want.previous != "") || !strings.Contains((*requests)[i], `"store":true`) {
			t.Errorf("request %d: %s", i+1, (*requests)[i])
		}
	}
	if len(*requests) != 5 {
		t.Errorf("%d requests", len(*requests))
	}
	if generate(t, p, r); strings.Contains((*requests)[5], "previous_response_id") {
		t.Errorf("nothing is new in %s", (*requests)[5])
	}
}

// A turn of many short calls names the answer before each.
func TestResponsesStoredRounds(t *testing.T) {
	const rounds = 40
	var answers [][]string
	for i := range rounds {
		answers = append(answers, completed(fmt.Sprint("resp_", i), strings.NewReplacer("fc_1", fmt.Sprint("fc_", i), "call_1", fmt.Sprint("call_", i)).Replace(called)))
	}
	p, requests := clerk(t, viaResponses, answers...)
	r := ask()
	r.Settings.ExtraBody = map[string]json.RawMessage{"store": json.RawMessage("true")}
	for i := range rounds {
		items := generate(t, p, r).Items
		r.Items = list(r.Items, items, output(items[0].CallID, "1"))
		if named := strings.Contains((*requests)[i], fmt.Sprintf(`"previous_response_id":"resp_%d"`, i-1)); named != (i > 0) {
			t.Fatalf("request %d is %s", i, (*requests)[i])
		}
	}
}

// An answer is named only if the server repeats the name.
func TestResponsesNamed(t *testing.T) {
	members := func(id, more string) []string {
		a := completed(id, spoke)
		return []string{"200", strings.Replace(a[1], `"model"`, more+`,"model"`, 1)}
	}
	const lost = `"code":"previous_response_not_found","message":"Previous response with id 'resp_1' not found."`
	const begun, piece = `{"type":"response.created","response":{"previous_response_id":null}}`, `{"type":"response.output_text.delta","delta":"Do"}`
	second, third := completed("resp_2", spoke), completed("resp_3", spoke)
	null := func(id string) []string { return members(id, `"previous_response_id":null,"usage":{"input_tokens":7}`) }
	for _, c := range []struct {
		name    string
		extra   string
		answers [][]string
		want    string // the answers that requests name; whole: none, failed: a call has failed
	}{
		{"stored", "", [][]string{completed("resp_1", spoke), members("resp_2", `"store":true,"previous_response_id":"resp_1"`), third}, "whole resp_1 resp_2"},
		{"compacted", "", [][]string{completed("resp_1", spoke, `{"type":"compaction","id":"cmp_1","encrypted_content":"g"}`), second, third}, "whole resp_1 resp_2"},
		{"compacted later, in an answer with an id from before", "", [][]string{completed("resp_1", spoke), completed("resp_2", spoke, `{"type":"compaction","id":"cmp_1","encrypted_content":"g"}`), third}, "whole resp_1 resp_2"},
		{"of no items", "", [][]string{completed("resp_1"), second, third}, "whole whole resp_2"},
		{"not stored, as it says", "", [][]string{members("resp_1", `"store":false`), second}, "whole whole resp_2"},
		{"lost", "", [][]string{completed("resp_1", spoke), {"404", `{"error":{` + lost + `}}`}, second}, "whole resp_1 whole resp_2"},
		{"lost, in other words", "", [][]string{completed("resp_1", spoke), {"404", `{"error":{"message":"no such response"}}`}, second}, "whole resp_1 whole resp_2"},
		{"of a request that is refused anyway", "", [][]string{completed("resp_1", spoke), {"400", `{"error":{"message":"odd"}}`}, {"400", `{"error":{"message":"odd"}}`}, second}, "whole resp_1 whole failed whole"},
		{"lost, told in the stream", "", [][]string{completed("resp_1", spoke), {"200", `{"type":"error",` + lost + `}`}, second}, "whole resp_1 whole resp_2"},
		{"lost, told at the end", "", [][]string{completed("resp_1", spoke), {"200", `{"type":"response.failed","response":{"status":"failed","error":{` + lost + `}}}`}, second}, "whole resp_1 whole resp_2"},
		{"lost, and the server broke", "", [][]string{completed("resp_1", spoke), {"500", `{"error":{` + lost + `}}`}, second}, "whole resp_1 failed whole"},
		{"the server broke", "", [][]string{completed("resp_1", spoke), {"500", `{"error":{"message":"oops"}}`}, second}, "whole resp_1 failed whole"},
		{"refused", "", [][]string{completed("resp_1", spoke), {"400", `{"error":{"message":"Previous response cannot be used for this organization due to Zero Data Retention."}}`}, second, third}, "whole resp_1 whole whole"},
		{"ignored", "", [][]string{completed("resp_1", spoke), {"200", begun, piece}, second, third}, "whole resp_1 whole whole"},
		{"ignored, and nothing told", "", [][]string{completed("resp_1", spoke), {"200", strings.Replace(second[1], `"model":"m",`, "", 1)}, second, third}, "whole resp_1 whole whole"},
		{"ignored, told at the end", "", [][]string{completed("resp_1", spoke), null("resp_2"), null("resp_3"), null("resp_4")}, "whole resp_1 whole whole"},
		{"ignored, told after a piece", "", [][]string{completed("resp_1", spoke), append([]string{"200", piece}, null("resp_2")[1:]...), second, third}, "whole resp_1 failed whole"},
		{"its own answer", `,"previous_response_id":"mine"`, [][]string{members("resp_1", `"previous_response_id":"mine"`), second}, "mine mine mine"},
		{"a conversation", `,"conversation":"conv_1"`, [][]string{completed("resp_1", spoke), second}, "whole whole whole"},
		{"another id of a call", "", [][]string{completed("resp_1", strings.Replace(called, "call_1", "", 1)), second}, "whole whole resp_2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, requests := clerk(t, viaResponses, c.answers...)
			r := ask()
			if err := json.Unmarshal([]byte(`{"store":true`+c.extra+`}`), &r.Settings.ExtraBody); err != nil {
				t.Fatal(err)
			}
			var got []string
			used := 0
			for range 3 {
				before := len(*requests)
				resp, err := p.Generate(t.Context(), r, nil)
				for i := before; i < len(*requests); i++ {
					_, named, _ := strings.Cut((*requests)[i], `"previous_response_id":"`)
					named, _, _ = strings.Cut(named, `"`)
					got = append(got, cmp.Or(named, "whole"))
					if whole := strings.HasPrefix(inputOf(t, *requests, i), `[{"role":"user","content":"hi"}`); whole != (named == "" || c.extra != "") {
						t.Errorf("request %d is %s", i, (*requests)[i])
					}
				}
				if err != nil {
					e := providers.AsError(err)
					if got = append(got, "failed"); !e.Temporary && e.Message != "odd" {
						t.Error(err)
					}
					used += e.Usage.Input
					continue
				}
				used += resp.Usage.Input
				r.Items = list(r.Items, resp.Items)
				for _, it := range resp.Items {
					if it.Type == messages.ItemCall {
						r.Items = list(r.Items, output(it.CallID, "1"))
					}
				}
				r.Items = list(r.Items, messages.Text(messages.RoleUser, "more"))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("named %v, want %s", got, c.want)
			}
			if want := 7 * strings.Count(fmt.Sprint(c.answers), `"input_tokens":7`); used != want {
				t.Errorf("used %d tokens, want %d", used, want)
			}
		})
	}
}

// What the server does not store is not named, and an answer that has begun is not asked for
// once more.
func TestResponsesNotStored(t *testing.T) {
	broken := []string{"200", `{"type":"response.output_text.delta","delta":"D"}`, `{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"no"}}}`}
	p, requests := clerk(t, viaResponses, completed("resp_1", spoke), completed("resp_2", spoke), broken)
	r, more := ask(), messages.Text(messages.RoleUser, "more")
	r.Items = list(r.Items, generate(t, p, r).Items, more)
	r.Settings.ExtraBody = map[string]json.RawMessage{"store": json.RawMessage("true")}
	if r.Items = list(r.Items, generate(t, p, r).Items, more); strings.Contains((*requests)[1], "previous_response_id") {
		t.Errorf("sent %s", (*requests)[1])
	}
	if e := fail(t, p, r); e.Kind != providers.BadRequest || len(*requests) != 3 || !strings.Contains((*requests)[2], `"previous_response_id":"resp_2"`) {
		t.Errorf("%v after %d requests", e, len(*requests))
	}
}
