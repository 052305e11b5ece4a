package messages

import (
	"errors"
	"reflect"
	"testing"
)

func parsePrompt(body, contentType string) (Input, error) {
	return ParsePromptInput(AgentID{Tenant: "default", Kind: "support", Key: "till"}, func(name string) string {
		if name == HeaderContentType {
			return contentType
		}
		return ""
	}, []byte(body))
}

// The protocol has its clients send fields of their own, which mean nothing here.
func TestFieldsOfOthersAreIgnored(t *testing.T) {
	plain := Input{Content: TextContent("hello")}
	for _, body := range []string{
		`{"prompt":"hello"}`, `{"prompt":"hello","id":7}`, `{"prompt":"hello","id":"session-1","policy":"soon","reply":"reprise.in.x"}`,
		`{"prompt":"hello","options":"none","deadline":false,"metadata":[1],"in":{},"at":7,"cron":1,"tz":[],"timer":null}`,
		`{"prompt":"hello","agent":"other/one","tenant":7,"kind":"x","key":"y","type":"approve","content":"no","Reprise":{"id":7}}`,
	} {
		if in, err := parsePrompt(body, ""); err != nil || !reflect.DeepEqual(in, plain) {
			t.Errorf("%s gives %+v, %v", body, in, err)
		}
	}
}

func TestFieldsOfAPrompt(t *testing.T) {
	want := Input{ID: "u1", Policy: PolicySteer, Content: Content{{Type: "text", Text: "a"}, {Type: "image_url", ImageURL: "https://example.org/a.png"}}, Metadata: []byte(`{"a":1}`), Options: InputOptions{MaxSteps: 3}}
	body, err := EncodePrompt(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, contentType := range []string{"", "application/json"} {
		if in, err := parsePrompt(string(body), contentType); err != nil || !reflect.DeepEqual(in, want) {
			t.Errorf("%s as %q gives %+v, %v", body, contentType, in, err)
		}
	}
	if in, err := parsePrompt(string(body), "text/plain; charset=utf-8"); err != nil || in.Content.Text() != string(body) {
		t.Errorf("as plain text it gives %+v, %v", in, err)
	}
	for _, ours := range []string{`7`, `null`, `"x"`, `{"id":7}`, `{"policy":"soon"}`, `{"deadline":"late"}`, `{"options":{"max_steps":-1}}`, `{"type":"approve"}`, `{"agent":"support/other"}`, `{"id":"in:1"}`} {
		_, err := parsePrompt(`{"prompt":"hello","reprise":`+ours+`}`, "")
		if refused := (*Error)(nil); !errors.As(err, &refused) || refused.Code.Status() != 400 {
			t.Errorf("%s gives %v, want status 400", ours, err)
		}
	}
}
