package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
)

// loginVariable holds the login of the embedded server where --auth does not name a file.
const loginVariable = "REPRISE_AUTH"

// loginFlags choose the login of the embedded server.
type loginFlags struct {
	auth     string
	insecure bool
}

func (f *loginFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.auth, "auth", "", "`FILE` with the login of the embedded NATS server, user:password or a token; commands on this machine find it in the data folder (default: $"+loginVariable+", else there is no login)")
	fs.BoolVar(&f.insecure, "insecure", false, "allow an embedded NATS server without a login that other machines can reach: they may then read, approve and delete everything")
}

// changed reports whether one of the flags is given.
func (f *loginFlags) changed(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("auth") || cmd.Flags().Changed("insecure")
}

// apply sets the login that the embedded server wants.
func (f *loginFlags) apply(cfg *cluster.Config) error {
	cfg.Insecure = f.insecure
	text, given := os.LookupEnv(loginVariable)
	where := loginVariable
	if f.auth != "" {
		b, err := readKeyFile(f.auth)
		if err != nil {
			return fmt.Errorf("the login of --auth cannot be read: %w", err)
		}
		text, where, given = string(b), f.auth, true
	}
	if !given {
		return nil
	}
	login, err := embedded.ParseLogin(text)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	cfg.Login = login
	return nil
}

// loginFile is where a node with an embedded server writes the login that it wants.
func loginFile(data string) string { return filepath.Join(data, "login") }

// leaveLogin writes the login for commands of the same user, or removes that of an earlier
// node that wanted one.
func leaveLogin(data string, login embedded.Login) error {
	if login == (embedded.Login{}) {
		if err := os.Remove(loginFile(data)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return whole(loginFile(data), written(login.Text()+"\n"))
}

// errUnused is the error of an address whose node was killed. Its login is not given to
// what may listen there now.
var errUnused = errors.New("the node was killed: no process uses the folder")

// localLogin adds the login that a local node left to its address.
func localLogin(data, address string) (string, error) {
	b, err := os.ReadFile(loginFile(data))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return address, nil
	case err != nil:
		return "", err
	case !embedded.Used(data):
		return "", errUnused
	}
	login, err := embedded.ParseLogin(string(b))
	if err != nil {
		return "", fmt.Errorf("%s: %w", loginFile(data), err)
	}
	return login.URL(address), nil
}
