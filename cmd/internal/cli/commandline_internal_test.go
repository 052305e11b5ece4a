package cli

import (
	"bytes"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// start runs the program in this process.
func start(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = Main(append([]string{"reprise"}, args...), strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestCommandLineMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"shwo":                `there is no command "shwo": did you mean show?`,
		"store scal":          `there is no command "scal": did you mean scale?`,
		"ls --phas idle":      "unknown flag: --phas: did you mean --phase?",
		"approve":             "AGENT and CALL are missing: reprise approve AGENT CALL",
		"approve a/b":         "CALL is missing",
		"ask a/b":             "TEXT is missing",
		"ls more":             `argument "more" is one too many`,
		"cancel":              "AGENT is missing",
		"ls --watch":          "--watch is for text on a terminal",
		"ls --since tomorrow": "write how long ago",

		"export a/b --to f --tenant x": "--tenant: leave it out: an agent is named",
		"export --kind a/b --to f":     `"a/b"`,
		"export --kind a --all --to f": "one of the three",
		"verify a/b --tenant x":        "--tenant: leave it out: an agent is named",
		"verify a/b --kind x":          "one of the four",
		"diff a/b":                     "OTHER is missing",
	} {
		if code, out, errs := start(strings.Fields(line)...); code != exitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %q, %q, want %q", line, code, out, errs, want)
		}
	}
}

func TestCompletionOfWords(t *testing.T) {
	t.Setenv("NATS_URL", "nats://127.0.0.1:1") // nothing answers there
	for line, want := range map[string]string{
		"ls -o ":              "text\njson\n:4\n",
		"ls --phase ":         "idle\nrunning\npaused\ndeleted\n:4\n",
		"decide a/b c ":       "completed\nfailed\nretry\n:4\n",
		"serve --sync ":       "always\nrelaxed\n:4\n",
		"check ":              ":0\n",
		"serve --config ":     ":0\n",
		"show ":               ":4\n",
		"ask assistant/main ": ":4\n",
		"find ":               ":4\n",
		"export --as ":        "file\nmarkdown\nopenai\n:4\n",
		"import a.gz --as ":   ":4\n",
	} {
		if code, out, _ := start(append([]string{"__complete"}, strings.Split(line, " ")...)...); code != 0 || out != want {
			t.Errorf("%s: exit code %d, %q, want %q", line, code, out, want)
		}
	}
}

func TestHelpListsConnectionFlagsApart(t *testing.T) {
	_, help, _ := start("effects", "--help")
	parts := regexp.MustCompile(`(?s)\nFlags:\n(.*)\nConnection Flags:\n(.*)\nGlobal Flags:\n`).FindStringSubmatch(help)
	if len(parts) != 3 || !strings.Contains(parts[1], "--where ") || strings.Contains(parts[1], "--nats ") || !strings.Contains(parts[2], "--nats ") || !strings.Contains(parts[2], "--data ") {
		t.Errorf("got %q", help)
	}
	if _, help, _ = start("--help"); strings.Contains(help, "Connection") || !strings.Contains(help, "--version ") || !strings.Contains(help, "--output ") {
		t.Errorf("got %q", help)
	}
}

// full is a disk on which no place is left.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, line := range []string{"version", "version -o json", "ls --help", "permissions --role node"} {
		var errs bytes.Buffer
		code := Main(append([]string{"reprise"}, strings.Fields(line)...), strings.NewReader(""), full{}, &errs)
		if code != exitFailed || !strings.Contains(errs.String(), "standard output cannot be written: no space left") {
			t.Errorf("%s: exit code %d, %q", line, code, errs.String())
		}
	}
}

func TestVersionFlag(t *testing.T) {
	if code, out, errs := start("--version"); code != 0 || out != versionText()+"\n" || errs != "" {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
}

func TestFlagsFromVariables(t *testing.T) {
	t.Setenv("REPRISE_OUTPUT", "json")
	t.Setenv("REPRISE_TIMEOUT", "")
	t.Setenv("REPRISE_TURN", "t4")
	if code, out, errs := start("version"); code != 0 || !strings.HasPrefix(out, `{"go":`) {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	if _, out, _ := start("version", "-o", "text"); strings.Contains(out, "{") {
		t.Errorf("the variable wins over the flag: %q", out)
	}
	t.Setenv("REPRISE_LIMIT", "many")
	if code, _, errs := start("ls"); code != exitUsage || !strings.Contains(errs, "REPRISE_LIMIT: ") {
		t.Errorf("exit code %d, %q", code, errs)
	}
}

func TestVariablesAndWhatExcludesThem(t *testing.T) {
	for _, test := range []struct {
		line, variables string
		code            int
		want            string // in what is said
	}{
		{"ls --nats nats://127.0.0.1:1", "REPRISE_DATA=/nowhere REPRISE_CONTEXT=none", exitFailed, "127.0.0.1:1"},
		{"ls --data /nowhere", "REPRISE_NATS=nats://127.0.0.1:1", exitFailed, "/nowhere/address"},
		{"serve --data /dev/null/x --config none", "REPRISE_NATS=nats://127.0.0.1:1", exitFailed, "none"},
		{"ls", "REPRISE_NATS=nats://127.0.0.1:1 REPRISE_DATA=/nowhere", exitUsage, "REPRISE_DATA and REPRISE_NATS exclude one another"},
		{"send a/b hello --data /nowhere", "REPRISE_NAME=blue", exitFailed, "/nowhere/address"},
		{"events a/b --turn t1 --data /nowhere", "REPRISE_TAIL=3", exitFailed, "/nowhere/address"},
		{"cancel a/b --all --data /nowhere", "REPRISE_INPUT=i REPRISE_TIMER=t", exitFailed, "/nowhere/address"},
		{"cancel a/b", "REPRISE_ALL=true", exitUsage, "name what to cancel"},
		{"effects a/b --data /nowhere", "REPRISE_TENANT=acme", exitFailed, "/nowhere/address"},
		{"export a/b --to - --data /nowhere", "REPRISE_TENANT=acme REPRISE_KIND=a", exitFailed, "/nowhere/address"},
		{"verify --from-file /nowhere --candidate none", "REPRISE_TENANT=acme REPRISE_KIND=a", exitFailed, "none"},
		{"ask a/b hello --data /nowhere", "REPRISE_AT=2026-01-01 REPRISE_ID=x", exitFailed, "/nowhere/address"},
		{"events a/b", "REPRISE_LIMIT=-1", exitUsage, "read from variables: REPRISE_LIMIT"},
		{"ls", "REPRISE_DATA=/nowhere", exitFailed, "read from variables: REPRISE_DATA"},
		{"ls", "REPRISE_OUTPUT=xml", exitUsage, "read from variables: REPRISE_OUTPUT"},
		{"ls", "REPRISE_TENANT=a.b REPRISE_PERSON=ann", exitUsage, "read from variables: REPRISE_TENANT\n"},
	} {
		t.Run(test.line, func(t *testing.T) {
			t.Setenv("NATS_URL", "")
			for _, variable := range strings.Fields(test.variables) {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			code, _, errs := start(strings.Fields(test.line)...)
			if code != test.code || !strings.Contains(errs, test.want) {
				t.Errorf("with %s: exit code %d, %q, want %d and %q", test.variables, code, errs, test.code, test.want)
			}
		})
	}
}

func TestVariablesThatAreNotTheCause(t *testing.T) {
	t.Setenv("REPRISE_PERSON", "ann")
	for _, line := range []string{"request a/joanna first", "verify", "effects --outcome failde"} {
		if code, _, errs := start(strings.Fields(line)...); code != exitUsage || strings.Contains(errs, "REPRISE_PERSON") {
			t.Errorf("%s: exit code %d, %q", line, code, errs)
		}
	}
}

// A variable may hold any bytes.
func TestVariablesThatAreNotText(t *testing.T) {
	t.Setenv("REPRISE_OUTPUT", "\xff\xfe")
	if code, _, errs := start("ls"); code != exitUsage || !strings.Contains(errs, `output form "\xff\xfe"`) {
		t.Errorf("exit code %d, %q", code, errs)
	}
}

func TestMomentWithoutZone(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, berlin)
	for text, want := range map[string]string{
		"2026-11-26":                "2026-11-25T23:00:00Z",
		"2026-11-26 10:00":          "2026-11-26T09:00:00Z",
		"2026-11-26T10:00:00Z":      "2026-11-26T10:00:00Z",
		"2026-11-26T10:00:00-05:00": "2026-11-26T15:00:00Z",
		"90m":                       "2026-11-27T09:30:00Z",
		"1d":                        "2026-11-26T11:00:00Z",
	} {
		if at, err := moment(text, now); err != nil || at.Format(time.RFC3339) != want {
			t.Errorf("%s: %v, %v, want %s", text, at, err, want)
		}
	}
}
