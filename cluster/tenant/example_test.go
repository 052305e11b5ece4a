package tenant_test

import (
	"fmt"
	"log"

	"github.com/reprise-dev/reprise/cluster/tenant"
)

// What a NATS server is configured with, so that two tenants cannot reach one another.
func ExampleAccounts() {
	layout, err := tenant.Accounts(
		tenant.Config{Tenant: "acme", Users: []string{"shop"}, Roles: []tenant.Role{tenant.Publish}},
		tenant.Config{Tenant: "globex", Users: []string{"desk"}, Roles: []tenant.Role{tenant.Publish, tenant.Read}})
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range layout.Accounts {
		fmt.Println(a.Name, a.JetStream, len(a.Users), "users", len(a.Exports), "exports", len(a.Imports), "imports")
	}
	fmt.Println(layout.Accounts[1].Users[0].Publish[0])
	// Output:
	// REPRISE true 2 users 13 exports 0 imports
	// REPRISE_acme false 1 users 0 exports 5 imports
	// REPRISE_globex false 1 users 0 exports 8 imports
	// reprise.in.acme.*.*
}
