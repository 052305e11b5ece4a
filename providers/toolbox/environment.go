package toolbox

import (
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-dev/reprise/providers/tool"
)

// inherited are the variables that every program gets, in upper case; those that begin
// with LC_ are, too. An address in one of them may hold the login to a proxy, which a
// program behind that proxy needs.
var inherited = []string{
	"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE",
}

// inheritedOnWindows are those without which programs do not start there.
var inheritedOnWindows = []string{"SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE"}

// environment is what a program runs with: what of the node's environment is inherited,
// what its configuration adds, and its call, which nothing can override.
func environment(own, added []string, call tool.Call) []string {
	var env []string
	for _, e := range own {
		name, _, _ := strings.Cut(e, "=")
		if inherits(name) || slices.Contains(added, name) {
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

// inherits reports whether every program gets the variable. The case of letters does not
// count: proxies are named either way, and on Windows all variables are.
func inherits(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(inherited, name) || runtime.GOOS == "windows" && slices.Contains(inheritedOnWindows, name) || strings.HasPrefix(name, "LC_")
}
