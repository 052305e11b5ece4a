package gateway

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// TestSenderOfServer holds that the server's word counts on its own reply subjects alone, and
// that it proves a user only whose JWT an account's key has signed and who is no leaf node.
func TestSenderOfServer(t *testing.T) {
	account := "A" + strings.Repeat("X", 55)
	jwt := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"UANN"}`)) + ".c2ln"
	info := func(kind, jwt, issuer string) string {
		return fmt.Sprintf(`{"kind":%q,"acc":"acme","user":"ann","jwt":%q,"issuer_key":%q}`, kind, jwt, issuer)
	}
	says, shown := messages.Person{Name: "boss", Claimed: true}, messages.Person{Name: "ann", Claimed: true, Account: "acme"}
	for name, c := range map[string]struct {
		reply, info string
		want        messages.Person
	}{
		"proved":                 {"_R_.x", info("Client", jwt, account), messages.Person{Name: "UANN", Account: "acme"}},
		"a client's subject":     {"_INBOX.x", info("Client", jwt, account), says},
		"no account's key":       {"_R_.x", info("Client", jwt, "acme"), shown},
		"a user's key":           {"_R_.x", info("Client", jwt, "U"+account[1:]), shown},
		"a leaf node":            {"_R_.x", info("Leafnode", jwt, account), shown},
		"no JWT":                 {"_R_.x", info("Client", "", account), shown},
		"a JWT of something":     {"_R_.x", info("Client", "a.!.c", account), shown},
		"an account and no user": {"_R_.x", `{"kind":"Client","acc":"acme"}`, messages.Person{Name: "boss", Claimed: true, Account: "acme"}},
		"nothing":                {"_R_.x", "", says},
	} {
		got := personOf(&nats.Msg{Reply: c.reply, Header: nats.Header{requestInfo: {c.info}, messages.HeaderPerson: {"boss"}}})
		if got == nil || *got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
