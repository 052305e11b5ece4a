package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cmd/internal/config"
)

func (a *app) schema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", GroupID: groupCheck, Args: cobra.NoArgs,
		Short: "Print the JSON schema of reprise.yaml, for editors",
		Long: `Print the JSON schema (draft 7) of reprise.yaml. Editors use it to complete keys and to mark
mistakes. With yaml-language-server, which is part of the YAML extension of VS Code, this first
line of the file names the schema:

  # yaml-language-server: $schema=reprise.schema.json`,
		Example: `  reprise schema >reprise.schema.json`,
		RunE: func(*cobra.Command, []string) error {
			e := json.NewEncoder(a.out)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			return e.Encode(config.Schema())
		},
	}
}
