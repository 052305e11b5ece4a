package messages_test

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

func TestClaimedBy(t *testing.T) {
	for name, want := range map[string]string{
		"": "", " \t\n": "", "alice": "alice", " Žofie Nová ": "Žofie Nová", "a\x1b[31m\nb\u202ec": "a[31mbc", "\xff\xfe": "",
		strings.Repeat("é", messages.MaxPerson):       strings.Repeat("é", messages.MaxPerson/2),
		"a" + strings.Repeat("é", messages.MaxPerson): "a" + strings.Repeat("é", messages.MaxPerson/2-1),
	} {
		got := messages.ClaimedBy(name)
		if (got == nil) != (want == "") || got != nil && *got != (messages.Person{Name: want, Claimed: true}) {
			t.Errorf("%q: got %+v, want %q", name, got, want)
		}
	}
}

func TestCausePerson(t *testing.T) {
	plain := messages.Cause{Type: "approve", ID: "a", Endpoint: "ctl", Reason: "why"}
	if p := plain.Person(); p != nil {
		t.Errorf("person of a cause without one: got %+v, want nil", p)
	}
	for _, p := range []messages.Person{{Name: "alice", Claimed: true}, {Name: "UABC", Account: "acme"}} {
		by := plain.From(&p)
		p.Endpoint = "ctl"
		if got := by.Person(); *got != p || by.Reason != "why" || by.ID != "a" {
			t.Errorf("person: got %+v of %+v, want %+v", got, by, p)
		}
		if by.From(nil) != plain {
			t.Errorf("cause without the person: got %+v, want %+v", by.From(nil), plain)
		}
	}
}
