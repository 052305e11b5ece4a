package wire

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/profile"
)

// TestInOrder has histories as they were written, and the order in which they are sent. u, a, n
// are messages of user, assistant and runtime, c1 a call and r1 its result.
func TestInOrder(t *testing.T) {
	items := func(words string) (list []messages.Item) {
		for word := range strings.FieldsSeq(words) {
			role := map[byte]string{'u': messages.RoleUser, 'a': messages.RoleAssistant, 'n': messages.RoleDeveloper}[word[0]]
			it := messages.Text(role, word)
			switch word[0] {
			case 'c':
				it = messages.Item{Type: messages.ItemCall, CallID: messages.CallID(word[1:]), Name: word}
			case 'r':
				it = messages.Item{Type: messages.ItemCallOutput, CallID: messages.CallID(word[1:]), Name: word}
			case 'x':
				it = messages.Item{Type: "strange", Name: word}
			}
			list = append(list, it)
		}
		return list
	}
	for written, want := range map[string]string{
		"u a c1 r1 a":          "u a c1 r1 a",
		"u c1 c2 u2 r2 n r1 a": "u c1 c2 r2 r1 u2 n a",
		"u c1 a c2 r1 r2":      "u c1 a c2 r1 r2",
		"u c1 c2 r1 a r2":      "u c1 c2 r1 r2 a",
		"u c1 x r1":            "u c1 r1 x",
		"c1 c2 r1 c3 u r2 r3":  "c1 c2 r1 r2 c3 r3 u",
		"u c1 u2 c1 r1":        "",
		"u c1":                 "",
		"u r1":                 "",
		"u c1 r1 r1":           "",
	} {
		list := items(written)
		var got []string
		err := InOrder(list, Said, func(i int, it messages.Item) error {
			if list[i].Name != it.Name || list[i].Content.Text() != it.Content.Text() {
				t.Errorf("%s: the item at %d is %+v", written, i, it)
			}
			got = append(got, it.Name+it.Content.Text())
			return nil
		})
		if (err != nil) != (want == "") || err == nil && strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, %v; want %q", written, got, err, want)
		}
		if err != nil && providers.AsError(err).Kind != providers.BadRequest {
			t.Errorf("%s: %v", written, err)
		}
	}
}

func TestSentID(t *testing.T) {
	long := messages.CallID(strings.Repeat("x", 41))
	for _, c := range []struct {
		id     messages.CallID
		form   profile.Value
		length int // 0: as it is
	}{
		{"abcDEF123", profile.Nine, 0}, {"call_ab-1", profile.Nine, 9}, {"call_ab_1", profile.Nine, 9}, {"short", profile.Nine, 9}, {"call_ab-1", profile.Word, 0},
		{"functions.f:0", profile.Word, 40}, {long, profile.Word, 40}, {"functions.f:0", profile.Any, 0}, {long, profile.Any, 0},
	} {
		got := SentID(c.id, c.form)
		if (c.length == 0) != (got == string(c.id)) || c.length > 0 && len(got) != c.length || got != SentID(c.id, c.form) {
			t.Errorf("%s by rule %s is sent as %s", c.id, c.form, got)
		}
		if c.form == profile.Nine && strings.ContainsAny(got, "-_") {
			t.Errorf("%s is sent as %s", c.id, got)
		}
	}
}
