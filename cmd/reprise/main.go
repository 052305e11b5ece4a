// Command reprise runs agents and talks to them.
package main

import (
	"os"

	"github.com/reprise-dev/reprise/cmd/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
