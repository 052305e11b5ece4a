package toolbox

import (
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-dev/reprise/providers/tool"
)

// environment is what a program runs with: what may be inherited, what its
// configuration adds, and its call, which nothing can override.
func environment(inherited, added []string, call tool.Call) []string {
	var env []string
	for _, e := range inherited {
		name, _, _ := strings.Cut(e, "=")
		if !secret(name) || slices.Contains(added, name) {
			env = append(env, e)
		}
	}
	for _, e := range added {
		if strings.Contains(e, "=") {
			env = append(env, e)
		}
	}
	agent, attempt := "", ""
	if call.ID != "" || call.Key != "" {
		agent, attempt = call.Agent.String(), strconv.Itoa(call.Attempt)
	}
	return append(env,
		"REPRISE_IDEMPOTENCY_KEY="+call.Key,
		"REPRISE_AGENT="+agent,
		"REPRISE_TURN="+string(call.Turn),
		"REPRISE_CALL="+string(call.ID),
		"REPRISE_ATTEMPT="+attempt,
	)
}

// secret says that a variable of that name is not for every program.
func secret(name string) bool {
	name = strings.ToUpper(name)
	for _, part := range []string{"APIKEY", "SECRET", "PASSWORD", "PASSWD", "PRIVATE_KEY"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "TOKEN")
}
