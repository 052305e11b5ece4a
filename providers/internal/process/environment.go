package process

import (
	"runtime"
	"slices"
	"strings"
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

// Environment returns what a program runs with: what of the own environment every program
// inherits, and what is added, as NAME=value, or as NAME for a variable of the own environment.
func Environment(own, added []string) []string {
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
	return env
}

// inherits reports whether every program gets the variable. The case of letters does not
// count: proxies are named either way, and on Windows all variables are.
func inherits(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(inherited, name) || runtime.GOOS == "windows" && slices.Contains(inheritedOnWindows, name) || strings.HasPrefix(name, "LC_")
}
