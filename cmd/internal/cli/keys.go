package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
)

// keyVariable holds the wrapping keys where neither flag nor file names them.
const keyVariable = "REPRISE_KEY"

// keyFlag adds to cmd the flag --key-file.
func keyFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "key-file", "",
		"`FILE` with the wrapping key, 32 bytes in hex or base64; older keys may follow it (default: encryption in the config, else $"+keyVariable+")")
}

// wrappingKeys finds the wrapping keys: in the file of the flag, else where the
// config says, else in the environment. None: nothing is encrypted.
func wrappingKeys(flag string, c config.EncryptionConfig) ([]encrypted.Key, error) {
	file, text, where := c.KeyFile, c.Key.Reveal(), "encryption.key"
	if flag != "" {
		file, text = flag, ""
	}
	switch {
	case file != "":
		b, err := readKeyFile(file)
		if err != nil {
			return nil, fmt.Errorf("the key file cannot be read: %w", err)
		}
		text, where = string(b), file
	case text == "":
		if text, where = os.Getenv(keyVariable), keyVariable; text == "" {
			return nil, nil
		}
	}
	keys, err := encrypted.ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return keys, nil
}

// readKeyFile reads a file that is no larger than keys are.
func readKeyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, 64<<10))
}
