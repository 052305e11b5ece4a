package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) cancel() *cobra.Command {
	var c messages.Cancel
	cmd := &cobra.Command{
		Use: "cancel AGENT --input ID | --timer NAME | --all", GroupID: groupChange, Args: cobra.ExactArgs(1),
		Short: "Cancel what has not run: a waiting input, a timer, or all of them",
		Long: `Cancel what has not run: a waiting input that no model has seen ("reprise show" lists them), a
timer ("reprise timers" lists them), or all of both. To stop a running turn, use "reprise
interrupt" or "reprise abort".`,
		Example: `  reprise cancel assistant/main --input question-1
  reprise cancel assistant/main --timer morning
  reprise cancel assistant/main --all`,
	}
	fs := cmd.Flags()
	fs.StringVar(&c.Input, "input", "", "cancel the waiting input with this `ID`, as show lists it")
	fs.StringVar(&c.Timer, "timer", "", "cancel the timer with this `NAME`, as timers lists it, or with the id of its input")
	fs.BoolVar(&c.All, "all", false, "cancel every waiting input and every timer")
	return a.changes(cmd, func(f changeFlags, args []string) (messages.Command, done, error) {
		c.ID, c.Reason = f.id, f.reason
		return c, plainly("cancelled %s", cancelled(c)), a.cancels(args[0], c)
	})
}

// cancels refuses a cancel that does not say what to take back, or says it twice.
func (a *app) cancels(agent string, c messages.Cancel) error {
	given := 0
	for _, is := range [...]bool{c.Input != "", c.Timer != "", c.All} {
		if is {
			given++
		}
	}
	switch given {
	case 1:
		return nil
	case 0:
		return usage("name what to cancel: --input ID, --timer NAME or --all; a running turn is stopped by `%s interrupt %s` or `%s abort %s`", a.started, agent, a.started, agent)
	}
	return usage("--input, --timer and --all exclude one another: give one of them")
}

// cancelled is what a cancel took back.
func cancelled(c messages.Cancel) string {
	switch {
	case c.All:
		return "every input that waited and every timer"
	case c.Timer != "":
		return "timer " + c.Timer
	}
	return "input " + c.Input
}
