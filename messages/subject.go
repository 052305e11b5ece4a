package messages

import (
	"slices"
	"strings"
	"unicode"
)

// DefaultRoot is the first token of all subjects unless configured otherwise.
const DefaultRoot = "reprise"

// ValidateRoot returns an error unless root may be the first token of an installation's
// subjects: a token as [ValidateToken] allows it that is not used by others. The code of
// the error is BadAddress.
func ValidateRoot(root string) error {
	if err := ValidateToken("subject root", root); err != nil {
		return err
	}
	if strings.HasPrefix(root, "_") || root == "agents" {
		return Refuse(BadAddress, "subject root %q: subjects under it belong to others; choose another first token", root)
	}
	return nil
}

// Subjects builds and reads the subjects of one installation. The zero value
// uses DefaultRoot.
//
//	<root>.in.<tenant>.<kind>.<key>          inputs
//	<root>.ctl.<tenant>.<kind>.<key>         every other command
//	<root>.inq.<part>.<in|ctl>.<t>.<k>.<key> both, as stored
//	<root>.q.<tenant>.<kind>.<key>           views of one agent
//	<root>.q.<tenant>                        views of a tenant
//	<root>.q                                 views of the whole store
//	<root>.log.<part>.<t>.<k>.<key>          frames
//	<root>.def.<sha256>                      definitions
//	<root>.snap.<part>.<t>.<k>.<key>.<name>.<chunk>   snapshots
//	<root>.blob.<part>.<t>.<k>.<key>.<sha256>.<chunk> payloads too large for a frame
//	<root>.dlq.<tenant>.<kind>.<key>         dead letters
//	<root>.live.<tenant>.<kind>.<key>        deltas, not kept
type Subjects struct {
	// Root is the first token; empty means DefaultRoot.
	Root string
}

// Names reports whether root, as a request names it, is this installation's. It is true if
// root is empty: the request names none.
func (s Subjects) Names(root string) bool { return root == "" || root == s.root() }

func (s Subjects) root() string {
	if s.Root == "" {
		return DefaultRoot
	}
	return s.Root
}

func (s Subjects) agent(family string, a AgentID) string {
	return s.root() + "." + family + "." + a.Tenant + "." + a.Kind + "." + a.Key
}

// In returns the subject of inputs for a.
func (s Subjects) In(a AgentID) string { return s.agent("in", a) }

// Ctl returns the subject of commands for a.
func (s Subjects) Ctl(a AgentID) string { return s.agent("ctl", a) }

// Peer returns the subject that the commands of other agents for a are stored under. Only
// nodes may publish to it: a user who may decide for one agent could act as its parent or
// child otherwise.
func (s Subjects) Peer(a AgentID) string {
	return s.root() + ".inq." + a.Partition().String() + ".peer." + a.Tenant + "." + a.Kind + "." + a.Key
}

// Query returns the subject of requests for views of a.
func (s Subjects) Query(a AgentID) string { return s.agent("q", a) }

// TenantQuery returns the subject of requests for views of a tenant.
func (s Subjects) TenantQuery(tenant string) string { return s.root() + ".q." + tenant }

// StoreQuery returns the subject of requests for views of the whole store, all tenants
// together. It is for administrators.
func (s Subjects) StoreQuery() string { return s.root() + ".q" }

// Live returns the subject of deltas of a.
func (s Subjects) Live(a AgentID) string { return s.agent("live", a) }

// DeadLetter returns the subject of inputs for a that can never be applied.
func (s Subjects) DeadLetter(a AgentID) string { return s.agent("dlq", a) }

// stored returns the subject of stored data of a, with its partition.
func (s Subjects) stored(family string, a AgentID) string {
	return s.root() + "." + family + "." + a.Partition().String() + "." + a.Tenant + "." + a.Kind + "." + a.Key
}

// Log returns the subject of a's frames.
func (s Subjects) Log(a AgentID) string { return s.stored("log", a) }

// Snapshots returns the prefix of the subjects of a's snapshots, before the name.
func (s Subjects) Snapshots(a AgentID) string { return s.stored("snap", a) }

// Blobs returns the prefix of the subjects of a's blobs, before the hash.
func (s Subjects) Blobs(a AgentID) string { return s.stored("blob", a) }

// BlobsOf returns the filter for the blobs of a partition.
func (s Subjects) BlobsOf(p Partition) string { return s.root() + ".blob." + p.String() + ".>" }

// LogOf returns the filter for the frames of a partition.
func (s Subjects) LogOf(p Partition) string { return s.root() + ".log." + p.String() + ".>" }

// InboxOf returns the filter for the stored inputs and commands of a partition.
func (s Subjects) InboxOf(p Partition) string { return s.root() + ".inq." + p.String() + ".>" }

// InboxOfAgent returns the filter for the stored inputs and commands of an agent.
func (s Subjects) InboxOfAgent(a AgentID) string {
	return s.root() + ".inq." + a.Partition().String() + ".*." + a.Tenant + "." + a.Kind + "." + a.Key
}

// Definition returns the subject of the definition with this hash.
func (s Subjects) Definition(hash string) string { return s.root() + ".def." + hash }

// Any returns the filter for a family of subjects, such as reprise.in.>
func (s Subjects) Any(family string) string { return s.root() + "." + family + ".>" }

// Replies returns the prefix of the inboxes of a user of a tenant. A reply subject that a
// command of the tenant names may be under it, or outside of the installation's subjects.
// Answers to other tenants are never published under it.
func (s Subjects) Replies(tenant, user string) string {
	return repliesRoot + "." + s.root() + "." + tenant + "." + user
}

// repliesRoot is the first token of the subjects of Replies.
const repliesRoot = "_REPLY"

// Status returns the subject of the agent protocol for a's status.
func Status(a AgentID) string { return "agents.status." + a.Kind + "." + a.Tenant + "." + a.Key }

// Question returns the subject for the answer to a question in the reply to a prompt. Only
// the recipient of the question knows token.
func Question(a AgentID, token string) string {
	return "agents.answer." + a.Kind + "." + a.Tenant + "." + a.Key + "." + token
}

// Prompt returns the subject of the Synadia Agent Protocol for NATS for prompts to a.
func Prompt(a AgentID) string { return "agents.prompt." + a.Kind + "." + a.Tenant + "." + a.Key }

// ParsePrompt returns the agent of an agents.prompt or agents.status subject.
func ParsePrompt(subject string) (AgentID, error) {
	t := strings.Split(subject, ".")
	if len(t) != 5 || t[0] != "agents" {
		return AgentID{}, Refuse(BadAddress, "subject %q: want agents.<verb>.<kind>.<tenant>.<key>", subject)
	}
	a := AgentID{Tenant: t[3], Kind: t[2], Key: t[4]}
	return a, a.Validate()
}

// tokens returns the tokens of a subject behind the root; nil if it is another installation's.
func (s Subjects) tokens(subject string) []string {
	rest, ok := strings.CutPrefix(subject, s.root()+".")
	if !ok {
		return nil
	}
	return strings.Split(rest, ".")
}

var agentFamilies = []string{"in", "ctl", "q", "live", "dlq"}

// ParseAgent returns the agent of a subject of the in, ctl, q, live or dlq family.
func (s Subjects) ParseAgent(subject string) (family string, a AgentID, err error) {
	t := s.tokens(subject)
	if len(t) != 4 || !slices.Contains(agentFamilies, t[0]) {
		return "", AgentID{}, Refuse(BadAddress, "subject %q: want %s.<in or ctl>.<tenant>.<kind>.<key>", subject, s.root())
	}
	a = AgentID{t[1], t[2], t[3]}
	return t[0], a, a.Validate()
}

// ParseInbox returns the family (in, ctl, or peer for commands of other agents) and the
// agent of a stored inbox subject.
func (s Subjects) ParseInbox(subject string) (family string, a AgentID, err error) {
	t := s.tokens(subject)
	if len(t) != 6 || t[0] != "inq" || t[2] != "in" && t[2] != "ctl" && t[2] != "peer" {
		return "", AgentID{}, Refuse(BadAddress, "subject %q: want %s.inq.<partition>.<in or ctl>.<tenant>.<kind>.<key>", subject, s.root())
	}
	family, a = t[2], AgentID{t[3], t[4], t[5]}
	if err := a.Validate(); err != nil || t[1] == a.Partition().String() {
		return family, a, err
	}
	return family, a, Refuse(BadAddress, "subject %q: agent %s belongs to partition %s; publish to %s", subject, a, a.Partition(), s.agent(family, a))
}

// ParseLog returns the agent of a log subject.
func (s Subjects) ParseLog(subject string) (AgentID, error) {
	t := s.tokens(subject)
	if len(t) != 5 || t[0] != "log" {
		return AgentID{}, Refuse(BadAddress, "subject %q is no log subject", subject)
	}
	a := AgentID{t[2], t[3], t[4]}
	if err := a.Validate(); err != nil || t[1] == a.Partition().String() {
		return a, err
	}
	return a, Refuse(BadAddress, "subject %q: agent %s belongs to partition %s", subject, a, a.Partition())
}
func unfitForSubject(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar
}

// Owner returns the subject on which the owner of a partition takes what other nodes send to its
// agents. Only those who may publish to _actor reach it.
func (s Subjects) Owner(p Partition) string { return "_actor." + s.root() + ".own." + p.String() }

// NodeOrders returns the subject of an operator's requests to a node; with an empty id,
// that of requests for the list of nodes. Only those who may publish to _actor reach it.
func (s Subjects) NodeOrders(id string) string {
	if id == "" {
		return "_actor." + s.root() + ".node"
	}
	return "_actor." + s.root() + ".node." + id
}

// TenantAt returns the tenant of a subject of the agent protocol or of the q family.
// Empty: it has none.
func (s Subjects) TenantAt(subject string) string {
	if t := s.tokens(subject); len(t) > 1 && t[0] == "q" {
		return t[1]
	}
	if t := strings.Split(subject, "."); len(t) >= 5 && t[0] == "agents" {
		return t[3]
	}
	return ""
}

// serverReplies are the first tokens of subjects by which servers route an answer to
// another account or cluster.
var serverReplies = []string{"_R_", "_GR_"}

// Across reports whether a reply subject leads to another account or cluster. The server
// does not know then whether it has a subscriber.
func Across(reply string) bool {
	first, _, _ := strings.Cut(reply, ".")
	return slices.Contains(serverReplies, first)
}

// AllowNamedReply is AllowReply for a subject that a body or header of a command for one of
// the tenant's agents names. It also refuses subjects by which servers route answers to
// other accounts: no client knows one of its own.
func (s Subjects) AllowNamedReply(tenant, subject string) error {
	if Across(subject) {
		return Refuse(ForbiddenReply, "reply subject %q: it belongs to the NATS server; use an inbox or a subject of your own", subject)
	}
	return s.AllowReply(tenant, subject)
}

// AllowReply refuses a subject for the answers to a request about a tenant; an empty tenant
// is none. It refuses the subjects of the installation, of the agent protocol and of the
// server, because answers would be a way to write where the caller may not, and those of
// Replies for other tenants.
func (s Subjects) AllowReply(tenant, subject string) error {
	if subject == "" {
		return nil
	}
	first, _, _ := strings.Cut(subject, ".")
	switch {
	case first == repliesRoot && (tenant == "" || !strings.HasPrefix(subject, s.Replies(tenant, ""))):
		return Refuse(ForbiddenReply, "reply subject %q: it is for the answers to somebody else; use an inbox of your own", subject)
	case len(subject) > maxReply:
		return Refuse(ForbiddenReply, "the reply subject has %d bytes: the limit is %d", len(subject), maxReply)
	case strings.HasPrefix(subject+".", s.root()+".") || first == DefaultRoot || first == "agents" || first == "_actor" || strings.HasPrefix(first, "$"):
		return Refuse(ForbiddenReply, "reply subject %q: answers are never published under %s., agents., $ or _actor.; use an inbox or a subject of your own", subject, s.root())
	case strings.ContainsAny(subject, "*>") || strings.ContainsFunc(subject, unfitForSubject) || strings.Contains(subject, "..") || strings.HasPrefix(subject, ".") || strings.HasSuffix(subject, "."):
		return Refuse(ForbiddenReply, "reply subject %q: name one plain subject, without wildcards, spaces or empty tokens", subject)
	}
	return nil
}
