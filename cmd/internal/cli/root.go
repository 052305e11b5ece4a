package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Root returns the commands of the program, for pages that are made of them: man pages, shell
// completion and the reference. It is not for running them: see [Main].
func Root() *cobra.Command {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, started: "reprise"}
	root := a.root()
	root.InitDefaultHelpCmd()
	return root
}
