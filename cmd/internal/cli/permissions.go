package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/tenant"
	"github.com/reprise-dev/reprise/messages"
)

type permissionFlags struct {
	tenant, root  string
	agents, roles []string
	users         []string
	shared        bool
}

// The roles of those who belong to no tenant.
const (
	roleNode  = "node"
	roleAdmin = "admin"
)

// commandList returns the types of the commands that the role decide may send.
func commandList() string {
	var lines []string
	for types := range slices.Chunk(messages.CommandTypes(messages.FromCtl), 7) {
		lines = append(lines, strings.Join(types, ", "))
	}
	return strings.Join(lines, ",\n           ")
}

func (a *app) permissions() *cobra.Command {
	var f permissionFlags
	cmd := &cobra.Command{
		Use: "permissions", GroupID: groupCheck, Args: cobra.NoArgs,
		Short: "Print the NATS permissions that keep tenants apart",
		Long: `Print the part of a NATS server's configuration that keeps tenants apart: the account of the
nodes with its exports, the account of the tenant with its imports, and the users of both with
the subjects that they may publish and subscribe to. The command connects to nothing and changes
nothing.

The roles, which can be combined:
  publish  send inputs, prompt agents, and follow the answers
  read     every view of the agents, and their answers as they are written
  decide   every command that is not an input:
           ` + commandList() + `
  node     the least that the user of the nodes must be allowed
  admin    everything in the account of the nodes

A user of a tenant connects with the inbox prefix that is printed with it, such as --inbox-prefix
_REPLY.reprise.acme.shop here and in the nats tool: answers are sent there, and no other user may
read them. Passwords are variables of the server's environment; -o json prints the same without
passwords, for tools that make accounts by JWT.`,
		Example: `  reprise permissions --tenant acme
  reprise permissions --tenant acme --user shop --user clerk=read,decide --user bot=publish@support/ticket-42
  reprise permissions --tenant acme --agent support/ticket-42 --role publish
  reprise permissions --role node`,
		RunE: func(*cobra.Command, []string) error { return a.runPermissions(f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.tenant, "tenant", "", "`TENANT` whose users and account are printed")
	fs.StringSliceVar(&f.agents, "agent", nil, "limit users to this `KIND/KEY`, an agent of the tenant (repeatable; default: all)")
	fs.StringSliceVar(&f.roles, "role", []string{string(tenant.Publish), string(tenant.Read)}, "`ROLES` of the users: publish, read, decide; or node or admin alone")
	fs.StringArrayVar(&f.users, "user", nil, "user, as `NAME[=ROLE,ROLE][@KIND/KEY]` if roles or agent differ (repeatable; default: one user with the name of the tenant)")
	fs.BoolVar(&f.shared, "shared", false, "put users and nodes into one account, in which they are not isolated from one another")
	fs.StringVar(&f.root, "root", messages.DefaultRoot, "first `TOKEN` of the installation's subjects")
	return cmd
}

func (a *app) runPermissions(f permissionFlags) error {
	if slices.Contains(f.roles, roleNode) || slices.Contains(f.roles, roleAdmin) {
		return a.ownUser(f)
	}
	if f.tenant == "" {
		return usage("--tenant: name the tenant, such as acme (--role node and --role admin belong to none)")
	}
	list, err := f.configs()
	if err != nil {
		return err
	}
	lay := tenant.Accounts
	if f.shared {
		lay = tenant.Shared
	}
	l, err := lay(list...)
	if err != nil {
		return usage("%v", err)
	}
	if a.json() {
		return a.object(l)
	}
	a.printf("%s", l.Text())
	return nil
}

// ownUser prints a user of the nodes' account.
func (a *app) ownUser(f permissionFlags) error {
	if len(f.roles) > 1 || f.tenant != "" || len(f.agents)+len(f.users) > 0 {
		return usage("--role %s stands alone: it belongs to no tenant", f.roles[0])
	}
	u := tenant.Admin()
	if f.roles[0] == roleNode {
		u = tenant.Node(messages.Subjects{Root: f.root})
	}
	if a.json() {
		return a.object(u)
	}
	a.printf("%s\n", u)
	return nil
}

// configs are the users by what they may: a part for each.
func (f permissionFlags) configs() (list []tenant.Config, err error) {
	users := f.users
	if len(users) == 0 {
		users = []string{f.tenant}
	}
	for _, u := range users {
		c := tenant.Config{Subjects: messages.Subjects{Root: f.root}, Tenant: f.tenant}
		rest, agent, limited := strings.Cut(u, "@")
		name, roles, own := strings.Cut(rest, "=")
		c.Users = []string{name}
		agents, may := f.agents, f.roles
		if limited {
			agents = []string{agent}
		}
		if own {
			may = strings.Split(roles, ",")
		}
		for _, role := range may {
			c.Roles = append(c.Roles, tenant.Role(role))
		}
		for _, text := range agents {
			id, err := agentOf(f.tenant, text)
			if err != nil {
				return nil, usage("%v", err)
			}
			c.Agents = append(c.Agents, id)
		}
		list = append(list, c)
	}
	return list, nil
}

// agentOf reads an agent's address, which may leave the tenant out.
func agentOf(of, text string) (messages.AgentID, error) {
	if strings.Count(text, "/") == 1 {
		text = of + "/" + text
	}
	return messages.ParseAgentID(text)
}
