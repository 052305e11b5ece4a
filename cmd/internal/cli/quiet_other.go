//go:build !linux

package cli

import "os"

// discardTyped forgets nothing: what was typed before is read.
func discardTyped(*os.File) {}

// quiet leaves the terminal as it is: what is typed is shown at once, and again where it is edited.
func quiet(*os.File) {}
