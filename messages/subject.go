package messages

import (
	"slices"
	"strings"
	"unicode"
)

// DefaultRoot is the first token of our subjects unless configured otherwise.
const DefaultRoot = "reprise"

// ValidateRoot says whether root may be the first token of an installation's subjects:
// a token as [ValidateToken] has it, under which nobody else has subjects. The error
// names it and is messages.BadAddress.
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

// Names says whether root, of a request that names one, is this installation's; empty:
// it names none.
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

// In is where inputs for a are published.
func (s Subjects) In(a AgentID) string { return s.agent("in", a) }

// Ctl is where commands for a are published.
func (s Subjects) Ctl(a AgentID) string { return s.agent("ctl", a) }

// Peer is where other agents' commands for a are stored. Nobody but nodes may publish
// there: who may decide for one agent could speak for its parent or child else.
func (s Subjects) Peer(a AgentID) string {
	return s.root() + ".inq." + a.Partition().String() + ".peer." + a.Tenant + "." + a.Kind + "." + a.Key
}

// Query is where views of a are asked for.
func (s Subjects) Query(a AgentID) string { return s.agent("q", a) }

// TenantQuery is where views of a whole tenant are asked for.
func (s Subjects) TenantQuery(tenant string) string { return s.root() + ".q." + tenant }

// StoreQuery is where views of the whole store are asked for, all tenants
// together: it is an administrator's.
func (s Subjects) StoreQuery() string { return s.root() + ".q" }

// Live is where deltas of a are published.
func (s Subjects) Live(a AgentID) string { return s.agent("live", a) }

// DeadLetter is where an input for a that can never be applied is kept.
func (s Subjects) DeadLetter(a AgentID) string { return s.agent("dlq", a) }

// stored is where something of a's is kept, by partition.
func (s Subjects) stored(family string, a AgentID) string {
	return s.root() + "." + family + "." + a.Partition().String() + "." + a.Tenant + "." + a.Kind + "." + a.Key
}

// Log is where a's frames are stored.
func (s Subjects) Log(a AgentID) string { return s.stored("log", a) }

// Snapshots is what the subjects of a's snapshots begin with, before the name.
func (s Subjects) Snapshots(a AgentID) string { return s.stored("snap", a) }

// Blobs is what the subjects of a's payloads begin with, before the hash.
func (s Subjects) Blobs(a AgentID) string { return s.stored("blob", a) }

// BlobsOf is the filter for the payloads of a whole partition.
func (s Subjects) BlobsOf(p Partition) string { return s.root() + ".blob." + p.String() + ".>" }

// LogOf is the filter for the frames of a whole partition.
func (s Subjects) LogOf(p Partition) string { return s.root() + ".log." + p.String() + ".>" }

// InboxOf is the filter for the stored inputs and commands of a partition.
func (s Subjects) InboxOf(p Partition) string { return s.root() + ".inq." + p.String() + ".>" }

// InboxOfAgent is the filter for the stored inputs and commands of an agent.
func (s Subjects) InboxOfAgent(a AgentID) string {
	return s.root() + ".inq." + a.Partition().String() + ".*." + a.Tenant + "." + a.Kind + "." + a.Key
}

// Definition is where the definition with this hash is stored.
func (s Subjects) Definition(hash string) string { return s.root() + ".def." + hash }

// Any is a subject family with a wildcard for the rest, such as reprise.in.>
func (s Subjects) Any(family string) string { return s.root() + "." + family + ".>" }

// Replies is where answers to a user of a tenant come to, as the prefix of its
// inboxes. What a tenant's command names as its reply subject may be there or outside
// of all that is ours; nothing is answered there to anybody of another tenant.
func (s Subjects) Replies(tenant, user string) string {
	return repliesRoot + "." + s.root() + "." + tenant + "." + user
}

// repliesRoot is the first token of the subjects of Replies.
const repliesRoot = "_REPLY"

// Status is where the agent protocol asks for a's status.
func Status(a AgentID) string { return "agents.status." + a.Kind + "." + a.Tenant + "." + a.Key }

// Question is where the answer to a question goes that was asked in the middle of a
// prompt's reply. Token is what nobody can know who was not asked.
func Question(a AgentID, token string) string {
	return "agents.answer." + a.Kind + "." + a.Tenant + "." + a.Key + "." + token
}

// Prompt is where the Synadia Agent Protocol for NATS prompts a.
func Prompt(a AgentID) string { return "agents.prompt." + a.Kind + "." + a.Tenant + "." + a.Key }

// ParsePrompt reads the agent from an agents.prompt or agents.status subject.
func ParsePrompt(subject string) (AgentID, error) {
	t := strings.Split(subject, ".")
	if len(t) != 5 || t[0] != "agents" {
		return AgentID{}, Refuse(BadAddress, "subject %q: want agents.<verb>.<kind>.<tenant>.<key>", subject)
	}
	a := AgentID{Tenant: t[3], Kind: t[2], Key: t[4]}
	return a, a.Validate()
}

var agentFamilies = []string{"in", "ctl", "q", "live", "dlq"}

// ParseAgent reads the agent from a subject of the in, ctl, q, live or dlq family.
func (s Subjects) ParseAgent(subject string) (family string, a AgentID, err error) {
	rest, ok := strings.CutPrefix(subject, s.root()+".")
	t := strings.Split(rest, ".")
	if !ok || len(t) != 4 || !slices.Contains(agentFamilies, t[0]) {
		return "", AgentID{}, Refuse(BadAddress, "subject %q: want %s.<in or ctl>.<tenant>.<kind>.<key>", subject, s.root())
	}
	a = AgentID{t[1], t[2], t[3]}
	return t[0], a, a.Validate()
}

// ParseInbox reads a stored inbox subject: which door (in, ctl, or peer for what
// other agents say) and which agent.
func (s Subjects) ParseInbox(subject string) (family string, a AgentID, err error) {
	rest, ok := strings.CutPrefix(subject, s.root()+".inq.")
	t := strings.Split(rest, ".")
	if !ok || len(t) != 5 || t[1] != "in" && t[1] != "ctl" && t[1] != "peer" {
		return "", AgentID{}, Refuse(BadAddress, "subject %q: want %s.inq.<partition>.<in or ctl>.<tenant>.<kind>.<key>", subject, s.root())
	}
	a = AgentID{t[2], t[3], t[4]}
	if err := a.Validate(); err != nil {
		return t[1], a, err
	}
	if t[0] != a.Partition().String() {
		return t[1], a, Refuse(BadAddress, "subject %q: agent %s belongs to partition %s; publish to %s", subject, a, a.Partition(), s.agent(t[1], a))
	}
	return t[1], a, nil
}

// ParseLog reads the agent from a log subject.
func (s Subjects) ParseLog(subject string) (AgentID, error) {
	rest, ok := strings.CutPrefix(subject, s.root()+".log.")
	t := strings.Split(rest, ".")
	if !ok || len(t) != 4 {
		return AgentID{}, Refuse(BadAddress, "subject %q is no log subject", subject)
	}
	a := AgentID{t[1], t[2], t[3]}
	if err := a.Validate(); err != nil {
		return a, err
	}
	if t[0] != a.Partition().String() {
		return a, Refuse(BadAddress, "subject %q: agent %s belongs to partition %s", subject, a, a.Partition())
	}
	return a, nil
}

// maxReply is the longest reply subject, in bytes: a server cuts the connection
// of whoever publishes to a subject that does not fit its control line.
const maxReply = 1024

func unfitForSubject(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar
}

// NodeOrders is where operators tell a node what to do; with an empty id, where any
// node says which there are. Only those who may publish to _actor reach it.
func (s Subjects) NodeOrders(id string) string {
	if id == "" {
		return "_actor." + s.root() + ".node"
	}
	return "_actor." + s.root() + ".node." + id
}

// TenantAt is the tenant that a request to this subject is about: one of the agent
// protocol, or of the q family. Empty: none.
func (s Subjects) TenantAt(subject string) string {
	if rest, ok := strings.CutPrefix(subject, s.root()+".q."); ok {
		tenant, _, _ := strings.Cut(rest, ".")
		return tenant
	}
	if t := strings.Split(subject, "."); len(t) >= 5 && t[0] == "agents" {
		return t[3]
	}
	return ""
}

// serverReplies are the first tokens of subjects by which servers bring an answer to
// another account or cluster.
var serverReplies = []string{"_R_", "_GR_"}

// Across says whether a reply subject leads to another account or cluster: the server
// that has it does not know whether anybody hears there.
func Across(reply string) bool {
	first, _, _ := strings.Cut(reply, ".")
	return slices.Contains(serverReplies, first)
}

// AllowNamedReply is AllowReply for a subject that a body or header of a command for
// one of the tenant's agents names. Those by which servers bring answers to other
// accounts are refused, too: nobody knows one that is his own.
func (s Subjects) AllowNamedReply(tenant, subject string) error {
	if Across(subject) {
		return Refuse(ForbiddenReply, "reply subject %q: it belongs to the NATS server; use an inbox or a subject of your own", subject)
	}
	return s.AllowReply(tenant, subject)
}

// AllowReply says whether subject may get the answers to a request about a tenant;
// empty: about none. Subjects of ours, of the agent protocol and of the server are
// refused: an answer there would be a way to write where the caller may not. So are
// those of Replies for other tenants.
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
