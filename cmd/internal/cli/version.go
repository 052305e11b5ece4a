package cli

import (
	"encoding/json"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker: see the Makefile.
var version = "dev"

// versionText is the version of this program, as far as it is known.
func versionText() string {
	if version != "dev" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return version
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", GroupID: groupCheck, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json() {
				return a.object(map[string]string{"version": versionText(), "go": runtime.Version()})
			}
			a.printf("%s\n", versionText())
			return nil
		},
	}
}

// object writes one JSON object a line.
func (a *app) object(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = a.out.Write(jsonLine(b))
	return err
}
