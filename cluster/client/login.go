package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"
)

// Login is the NATS user of a connection.
type Login struct {
	// User is the name, or the public key, that the connection logged in with. Empty: the server
	// requires no login.
	User string `json:"user"`
	// Account is the NATS account of the user.
	Account string `json:"account"`
}

// GlobalAccount is the NATS account of users that are in no other account.
const GlobalAccount = "$G"

// Login returns the user and the account of this client. [ErrNotAllowed] for users of a tenant, who
// may not ask for it.
func (c *Client) Login(ctx context.Context) (Login, error) {
	const subject = "$SYS.REQ.USER.INFO"
	var answer struct{ Data Login }
	msg, err := c.request(ctx, subject)
	if err == nil {
		err = json.Unmarshal(msg.Data, &answer)
	}
	if err != nil {
		return Login{}, fmt.Errorf("ask the server for this user's account: %w", err)
	}
	return answer.Data, nil
}

// request asks one of the server's own subjects.
func (c *Client) request(ctx context.Context, subject string) (*nats.Msg, error) {
	ctx, leave := c.refused.heed(ctx, subject)
	defer leave()
	msg, err := c.nc.RequestWithContext(ctx, subject, nil)
	return msg, why(ctx, err)
}
