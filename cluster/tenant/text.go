package tenant

import (
	"fmt"
	"strings"
)

// Text is the layout as a part of a NATS server's configuration file. The passwords
// are variables of the server's environment, or of the file.
func (l Layout) Text() string {
	t := &text{}
	if l.Shared {
		t.line("# Not isolated: in one account only permissions separate users. They cannot read each")
		t.line("# other's data, but the server sends acknowledgements to any subject that they name,")
		t.line("# also to another agent's log. Use this only for users who trust one another.")
	} else {
		t.line("# The nodes and the tenant have separate accounts: the server rewrites reply subjects,")
		t.line("# so that no user can direct an answer to a subject that it may not publish to.")
	}
	t.line("# Each password is a variable of the server's environment. For another tenant, or other")
	t.line("# users of this one, print again and add the exports, imports and users that are new.")
	t.open("accounts {")
	for _, a := range l.Accounts {
		t.account(a)
	}
	t.close("}")
	return t.b.String()
}

// text is a configuration that is being written.
type text struct {
	b    strings.Builder
	deep int
}

func (t *text) line(format string, args ...any) {
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		t.b.WriteString(strings.TrimRight(strings.Repeat("  ", t.deep)+line, " ") + "\n")
	}
}

func (t *text) open(format string, args ...any) {
	t.line(format, args...)
	t.deep++
}

func (t *text) close(end string) {
	t.deep--
	t.line("%s", end)
}

func (t *text) account(a Account) {
	t.line("# %s", a.what)
	t.open("%q {", a.Name)
	if a.JetStream {
		t.line("jetstream: enabled")
	}
	t.open("users: [")
	for _, u := range a.Users {
		t.line("# %s", u.what)
		if u.InboxPrefix != "" {
			t.line("# connects with the inbox prefix %s", u.InboxPrefix)
		}
		t.line("%s", u)
	}
	t.close("]")
	if len(a.Exports) > 0 {
		t.open("exports: [")
		for _, e := range a.Exports {
			t.line("%s", e)
		}
		t.close("]")
	}
	if len(a.Imports) > 0 {
		t.open("imports: [")
		for _, i := range a.Imports {
			t.line("%s", i)
		}
		t.close("]")
	}
	t.close("}")
}

// String is a line of an account's exports.
func (e Export) String() string {
	switch {
	case e.Stream != "":
		return fmt.Sprintf("{ stream: %q, accounts: %s }", e.Stream, quoted(e.Accounts))
	case e.Streamed:
		return fmt.Sprintf("{ service: %q, response_type: Stream, accounts: %s }", e.Service, quoted(e.Accounts))
	}
	return fmt.Sprintf("{ service: %q, accounts: %s }", e.Service, quoted(e.Accounts))
}

// String is a line of an account's imports.
func (i Import) String() string {
	if i.Stream != "" {
		return fmt.Sprintf("{ stream: { account: %q, subject: %q } }", i.Account, i.Stream)
	}
	if i.Share {
		return fmt.Sprintf("{ service: { account: %q, subject: %q }, share: true }", i.Account, i.Service)
	}
	return fmt.Sprintf("{ service: { account: %q, subject: %q } }", i.Account, i.Service)
}

// quoted is a list of strings as the server's configuration has it.
func quoted(list []string) string {
	return "[" + join(list, func(s string) string { return fmt.Sprintf("%q", s) }) + "]"
}
