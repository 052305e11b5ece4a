// Package tenant computes the configuration of a NATS server by which tenants that share a
// cluster cannot reach one another: which accounts, what they export and import, and what each
// user may publish and subscribe to.
//
// # Guarantees
//
//   - A user gets the subjects of its roles and of its tenant, or of its agents, and
//     nothing else: no JetStream, no key-value buckets, no inbox but its own.
//   - Answers come to a subject of the user's own, below [messages.Subjects.Replies].
//   - Nothing here holds a password: the text names variables that the server reads.
//
// The package connects to nothing.
package tenant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

// Role is what a user of a tenant may do.
type Role string

// The roles. They can be combined.
const (
	// Publish: send inputs, prompt, and follow what comes of it.
	Publish Role = "publish"
	// Read: every view of the agents, and their answers as they are written.
	Read Role = "read"
	// Decide: every command that is no input, such as approve, abort and delete.
	Decide Role = "decide"
)

// Roles are all of them.
var Roles = []Role{Publish, Read, Decide}

// Config describes a tenant and the users who may log in.
type Config struct {
	Subjects messages.Subjects
	// Tenant is a tenant's name.
	Tenant string
	// Agents are those of the tenant that its users are limited to. Empty: all.
	Agents []messages.AgentID
	// Roles of the users. Empty: Publish and Read.
	Roles []Role
	// Users are their names. Empty: one, called as the tenant.
	Users []string
}

// validate refuses what would open more than was meant, and names that are taken.
func (c *Config) validate(taken map[string]bool) error {
	if len(c.Roles) == 0 {
		c.Roles = []Role{Publish, Read}
	}
	if len(c.Users) == 0 {
		c.Users = []string{c.Tenant}
	}
	if err := messages.ValidateToken("tenant", c.Tenant); err != nil {
		return err
	}
	for _, r := range c.Roles {
		if !slices.Contains(Roles, r) {
			return messages.Refuse(messages.BadInput, "role %q: write publish, read or decide", r)
		}
	}
	for _, u := range c.Users {
		if err := messages.ValidateToken("user", u); err != nil {
			return err
		}
		variable := User{Name: u}.Variable()
		if taken[variable] {
			return messages.Refuse(messages.BadInput, "user %q: the name is taken, or would share the password variable %s; choose another", u, variable)
		}
		taken[variable] = true
	}
	for _, a := range c.Agents {
		if err := a.Validate(); err != nil {
			return err
		}
		if a.Tenant != c.Tenant {
			return messages.Refuse(messages.BadInput, "agent %s belongs to tenant %s, not to %s", a.Full(), a.Tenant, c.Tenant)
		}
	}
	return nil
}

// Layout is what a NATS server must be configured with.
type Layout struct {
	Accounts []Account `json:"accounts"`
	// Shared reports whether users and nodes are in one account, where permissions alone
	// keep them apart.
	Shared bool `json:"shared"`
}

// Account is a NATS account.
type Account struct {
	Name      string   `json:"name"`
	JetStream bool     `json:"jetstream"`
	Users     []User   `json:"users"`
	Exports   []Export `json:"exports,omitempty"`
	Imports   []Import `json:"imports,omitempty"`
	what      string
}

// User is a login of an account, with its permissions.
type User struct {
	Name string `json:"name"`
	// InboxPrefix is where the user's answers come to: one who connects must set it.
	// Empty: NATS's own.
	InboxPrefix string `json:"inbox_prefix,omitempty"`
	// Publish and Subscribe are all that the user may. Empty: everything that is in
	// the account.
	Publish   []string `json:"publish,omitempty"`
	Subscribe []string `json:"subscribe,omitempty"`
	what      string
}

// Export is what an account offers another one: a service, which takes requests, or a stream,
// which is only listened to.
type Export struct {
	Service string `json:"service,omitempty"`
	Stream  string `json:"stream,omitempty"`
	// Streamed reports whether a request of the service has more than one answer.
	Streamed bool     `json:"streamed,omitempty"`
	Accounts []string `json:"accounts"`
}

// Import is what an account takes of another one.
type Import struct {
	Account string `json:"account"`
	Service string `json:"service,omitempty"`
	Stream  string `json:"stream,omitempty"`
	// Share has the server name the sender of a request, for the log.
	Share bool `json:"share,omitempty"`
}

const (
	nodeUser  = "node"
	adminUser = "admin"
)

// Accounts puts the nodes into an account of their own, and each tenant into another
// one, which imports what the roles of its users need: the server then rewrites the
// subjects for answers. Several of one tenant are put together. An error is a
// *[messages.Error].
func Accounts(list ...Config) (Layout, error) {
	l, err := layout(list)
	for _, c := range l.configs {
		theirs := l.account(l.Accounts[0].Name+"_"+c.Tenant, "tenant "+c.Tenant+": no JetStream; it reaches what it imports, and nothing else")
		theirs.Users = append(theirs.Users, c.users()...)
		for _, g := range c.grants([]messages.AgentID{anyOf(c.Tenant)}) {
			l.Accounts[0].export(g, theirs.Name)
			theirs.imports(g, l.Accounts[0].Name)
		}
	}
	return l.Layout, err
}

// Shared gives the tenants' users permissions in the account of the nodes. It keeps
// them from reading one another, but does not isolate them: the server stores its
// acknowledgement of what they publish wherever they ask it to, also among the frames
// of another tenant's agent, which stops that agent. An error is a *[messages.Error].
func Shared(list ...Config) (Layout, error) {
	l, err := layout(list)
	for _, c := range l.configs {
		l.Accounts[0].Users = append(l.Accounts[0].Users, c.users()...)
	}
	if l.Shared = err == nil; l.Shared {
		l.Accounts[0].what = "nodes and tenants together: users of this account must trust one another"
	}
	return l.Layout, err
}

// begun is a layout with the account of the nodes, and who is to be let in.
type begun struct {
	Layout
	configs []Config
}

func layout(list []Config) (begun, error) {
	if len(list) == 0 {
		return begun{}, messages.Refuse(messages.BadInput, "name a tenant")
	}
	names := map[string]bool{User{Name: nodeUser}.Variable(): true, User{Name: adminUser}.Variable(): true}
	for i := range list {
		if err := list[i].validate(names); err != nil {
			return begun{}, err
		}
		if list[i].Subjects != list[0].Subjects {
			return begun{}, messages.Refuse(messages.BadInput, "tenants of two installations: pass those of one installation")
		}
	}
	s := list[0].Subjects
	return begun{Layout{Accounts: []Account{{
		Name: nodesAccount(s), JetStream: true, Users: []User{Node(s), Admin()}, what: "the nodes and their streams: only they log in here",
	}}}, list}, nil
}

// account is the one with this name, which is made if there is none.
func (b *begun) account(name, what string) *Account {
	i := slices.IndexFunc(b.Accounts, func(a Account) bool { return a.Name == name })
	if i < 0 {
		i, b.Accounts = len(b.Accounts), append(b.Accounts, Account{Name: name, what: what})
	}
	return &b.Accounts[i]
}

func (a *Account) export(g grant, to string) {
	e := Export{Service: g.subject, Streamed: g.streamed, Accounts: []string{to}}
	if g.stream {
		e = Export{Stream: g.subject, Accounts: []string{to}}
	}
	if !slices.ContainsFunc(a.Exports, func(have Export) bool { return have.Service == e.Service && have.Stream == e.Stream }) {
		a.Exports = append(a.Exports, e)
	}
}

func (a *Account) imports(g grant, from string) {
	i := Import{Account: from, Service: g.subject, Share: g.named}
	if g.stream {
		i = Import{Account: from, Stream: g.subject}
	}
	if !slices.Contains(a.Imports, i) {
		a.Imports = append(a.Imports, i)
	}
}

func nodesAccount(s messages.Subjects) string {
	root, _, _ := strings.Cut(s.StoreQuery(), ".")
	return strings.ToUpper(root)
}

// anyOf stands for all agents of a tenant.
func anyOf(tenant string) messages.AgentID {
	return messages.AgentID{Tenant: tenant, Kind: "*", Key: "*"}
}

// grant is a subject that a role needs.
type grant struct {
	subject string
	// stream reports whether it is subscribed to, not published to; streamed whether a request
	// has more than one answer.
	stream, streamed bool
	// named reports whether the server names the sender of the request.
	named bool
}

// grants are those of the roles, for each agent.
func (c *Config) grants(agents []messages.AgentID) (all []grant) {
	for _, a := range agents {
		for _, role := range Roles {
			if slices.Contains(c.Roles, role) {
				all = append(all, c.grantsOf(role, a)...)
			}
		}
	}
	return append(all, grant{subject: c.Subjects.Replies(c.Tenant, ">"), stream: true})
}

func (c *Config) grantsOf(role Role, a messages.AgentID) (all []grant) {
	switch role {
	case Publish:
		return []grant{
			{subject: c.Subjects.In(a)},
			{subject: messages.Prompt(a), streamed: true, named: true},
			{subject: messages.Status(a)},
			{subject: messages.Question(a, "*"), named: true},
		}
	case Read:
		all = []grant{{subject: c.Subjects.Query(a), streamed: true}}
		if a == anyOf(c.Tenant) {
			all = append(all, grant{subject: c.Subjects.TenantQuery(c.Tenant), streamed: true})
		}
		return append(all, grant{subject: c.Subjects.Live(a), stream: true})
	}
	return []grant{{subject: c.Subjects.Ctl(a)}}
}

// users are the tenant's, each with answers of its own.
func (c *Config) users() (all []User) {
	agents, whose := c.Agents, "all agents of tenant "+c.Tenant
	if len(agents) == 0 {
		agents = []messages.AgentID{anyOf(c.Tenant)}
	} else {
		whose = "these agents alone: " + join(agents, messages.AgentID.Full)
	}
	for _, name := range c.Users {
		u := User{Name: name, InboxPrefix: c.Subjects.Replies(c.Tenant, name), what: join(c.Roles, func(r Role) string { return string(r) }) + "; " + whose}
		for _, g := range c.grants(agents) {
			switch {
			case g.subject == c.Subjects.Replies(c.Tenant, ">"):
				u.Subscribe = append(u.Subscribe, u.InboxPrefix+".>")
			case g.stream:
				u.Subscribe = append(u.Subscribe, g.subject)
			default:
				u.Publish = append(u.Publish, g.subject)
			}
		}
		all = append(all, u)
	}
	return all
}

func join[T any](list []T, text func(T) string) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = text(v)
	}
	return strings.Join(parts, ", ")
}

// Node is the user that nodes log in as, with what they may do at least. Replies
// that inputs ask for reach only the subjects below.
func Node(s messages.Subjects) User {
	root, _, _ := strings.Cut(s.StoreQuery(), ".")
	both := []string{root + ".>", "agents.>", "_actor.>", "_INBOX.>", s.Replies("*", ">")}
	return User{
		Name:      nodeUser,
		Publish:   slices.Concat(both, []string{"_R_.>", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "$KV.>", "$SYS.REQ.USER.INFO"}),
		Subscribe: slices.Concat(both, []string{"$SRV.>"}),
		what:      "for `reprise serve`: no more than a node needs",
	}
}

// Admin is a user who may do everything in the account of the nodes, as for backups and doctor.
func Admin() User {
	return User{Name: adminUser, what: "for people: everything in this account, as backups and doctor need"}
}

// Variable is the environment variable that the text of a layout names for a user's
// password.
func (u User) Variable() string {
	return "NATS_" + strings.ToUpper(strings.NewReplacer("-", "_", "=", "_").Replace(u.Name)) + "_PASSWORD"
}

// String is one line of a configuration's users.
func (u User) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "{ user: %q, password: $%s", u.Name, u.Variable())
	if len(u.Publish)+len(u.Subscribe) > 0 {
		fmt.Fprintf(&b, ", permissions: {\n  publish: { allow: %s }\n  subscribe: { allow: %s }\n}", quoted(u.Publish), quoted(u.Subscribe))
	}
	return b.String() + " }"
}
