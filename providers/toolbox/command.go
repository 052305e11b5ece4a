package toolbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reprise-dev/reprise/providers/internal/process"
	"github.com/reprise-dev/reprise/providers/tool"
)

// DefaultMaxOutput is how much a program may write when its tool does not say: as
// much as a node keeps of a result, unless that was changed.
const DefaultMaxOutput = 64 << 20

// CommandConfig makes a tool of a program.
//
// The program gets the arguments as one line of JSON on standard input, with
// the idempotency key among them if KeyField is set. What
// it writes to standard output, without newlines at its end, is the result if
// it exits with 0. Otherwise the error is its exit code and the end of what it
// wrote to standard error (or to standard output, if that is all there is).
// The call ends with the program: processes that it leaves running in its
// process group are killed.
type CommandConfig struct {
	// Name is 1 to 64 letters, digits, _ and -.
	Name        string
	Description string
	// Parameters is the JSON schema of the arguments: an object. Nil: any
	// object fits.
	Parameters json.RawMessage
	// Command is the program and its arguments. A bare name is looked up in
	// PATH; a relative path starts at Dir.
	Command []string
	// Dir is where the program runs. Empty: the current directory.
	Dir string
	// Env is added to what the program inherits: "NAME=value" sets a variable,
	// "NAME" passes on one of this process. Of those it inherits by itself, in any
	// case of letters: PATH, HOME, USER, LANG, LC_*, TZ and TMPDIR; the variables
	// that name proxies and certificates of authorities (HTTP_PROXY, NO_PROXY,
	// SSL_CERT_FILE and the like); and those without which no program starts on
	// Windows. REPRISE_IDEMPOTENCY_KEY, REPRISE_AGENT, REPRISE_TURN,
	// REPRISE_CALL and REPRISE_ATTEMPT are always those of the call.
	Env []string
	// OnUnknown is what to do with a call when the node stopped before its result was
	// stored. Zero: tool.Pause.
	OnUnknown tool.OnUnknown
	// Reconcile is the program that reports what became of a call, for tool.Reconcile and
	// no other OnUnknown. It runs as Command does, with the call's
	// REPRISE_IDEMPOTENCY_KEY and {} as arguments: exit code 0 means done, with
	// the result on standard output; 3 means surely not done; others, unsure.
	Reconcile []string
	// Timeout ends a call that takes longer. Zero: tool.DefaultTimeout.
	Timeout time.Duration
	// MaxOutput is the most bytes of output; a program that writes more is
	// killed and the call fails. Zero: DefaultMaxOutput.
	MaxOutput int
	// Approval is which calls wait for a person. Zero: tool.Never.
	Approval tool.Approval
	// ApproveIf reports whether a call with these arguments waits. It is for tool.Asked and no
	// other Approval. An error counts as yes. It must have no effects and be safe for
	// concurrent use.
	ApproveIf func(arguments json.RawMessage) (bool, error)
	// ApproveRepeats wants approval also for a call with the arguments of another one in
	// the same turn. OnUnknown is tool.Pause or tool.Rerun.
	ApproveRepeats bool
	// ApprovalTimeout denies a call that was not decided. Zero: the
	// definition's.
	ApprovalTimeout time.Duration
	// KeyField is a field that is added to the arguments of each run, of
	// Reconcile too, and holds the idempotency key. The model does not see it,
	// and what it writes there is replaced. Arguments with a name twice, also in
	// other upper and lower case, are then refused: adding a field must change no
	// other. Empty: none.
	KeyField string
}

// notDone is the exit code by which a Reconcile program says so.
const notDone = 3

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Command makes a tool of a program. Its error names the field that is wrong.
// The program itself is looked for at each call; [CommandConfig.Program] looks
// at once.
func Command(c CommandConfig) (tool.Tool, error) {
	if !toolName.MatchString(c.Name) {
		return nil, fmt.Errorf("tool %q: a name is 1 to 64 letters, digits, _ and -", c.Name)
	}
	if c.MaxOutput == 0 {
		c.MaxOutput = DefaultMaxOutput
	}
	if c.Timeout == 0 {
		c.Timeout = tool.DefaultTimeout
	}
	if len(bytes.TrimSpace(c.Parameters)) == 0 {
		c.Parameters = json.RawMessage(`{"type":"object"}`)
	}
	schema, err := resolve(c.Parameters)
	if err != nil {
		return nil, fmt.Errorf("tool %s: parameters: %w", c.Name, err)
	}
	for _, check := range []func() error{c.validate, c.validateOnUnknown, c.validateApproval, func() error { return c.validateKeyField(schema.Schema()) }} {
		if err := check(); err != nil {
			return nil, fmt.Errorf("tool %s: %w", c.Name, err)
		}
	}
	p := &program{config: c, schema: schema, drain: drain}
	if c.OnUnknown == tool.Reconcile {
		return &reconciler{p}, nil
	}
	return p, nil
}

func (c CommandConfig) validate() error {
	switch {
	case len(c.Command) == 0 || c.Command[0] == "":
		return errors.New("command: it is empty; write the program and its arguments")
	case c.Timeout < 0:
		return fmt.Errorf("timeout: %s is negative", c.Timeout)
	case c.MaxOutput < 0:
		return fmt.Errorf("max output: %d is negative", c.MaxOutput)
	}
	for _, e := range c.Env {
		if name, _, _ := strings.Cut(e, "="); name == "" || strings.ContainsRune(e, 0) {
			return errors.New("env: an entry has no name or holds a NUL; write NAME=value, or NAME to pass it on")
		}
	}
	return nil
}

func (c CommandConfig) validateOnUnknown() error {
	asks := len(c.Reconcile) > 0 && c.Reconcile[0] != ""
	switch c.OnUnknown {
	case "", tool.ReadOnly, tool.Rerun, tool.Pause:
		if asks {
			return fmt.Errorf("reconcile: only a tool with on_unknown %s is asked", tool.Reconcile)
		}
	case tool.Reconcile:
		if !asks {
			return fmt.Errorf("on_unknown %s: reconcile is empty; write the program that reports what became of a call", tool.Reconcile)
		}
	default:
		return fmt.Errorf("on_unknown %q: write %s, %s, %s or %s", c.OnUnknown, tool.ReadOnly, tool.Rerun, tool.Reconcile, tool.Pause)
	}
	return nil
}

func (c CommandConfig) validateApproval() error {
	switch {
	case c.Approval != tool.Never && c.Approval != tool.Always && c.Approval != tool.Asked:
		return fmt.Errorf("approval %q: write %s or %s, or nothing", c.Approval, tool.Always, tool.Asked)
	case c.Approval == tool.Asked && c.ApproveIf == nil:
		return fmt.Errorf("approval %s: there is no ApproveIf to ask", tool.Asked)
	case c.Approval != tool.Asked && c.ApproveIf != nil:
		return fmt.Errorf("ApproveIf: it is only asked of approval %s", tool.Asked)
	case c.ApproveRepeats && (c.OnUnknown == tool.ReadOnly || c.OnUnknown == tool.Reconcile):
		return fmt.Errorf("approve repeats: only calls of tools with on_unknown %s and %s are compared with earlier ones", tool.Rerun, tool.Pause)
	case c.ApprovalTimeout < 0:
		return fmt.Errorf("approval timeout: %s is negative", c.ApprovalTimeout)
	}
	return nil
}

func (c CommandConfig) validateKeyField(schema *jsonschema.Schema) error {
	_, taken := schema.Properties[c.KeyField]
	switch {
	case c.KeyField == "":
		return nil
	case !toolName.MatchString(c.KeyField):
		return fmt.Errorf("key field %q: a name is 1 to 64 letters, digits, _ and -", c.KeyField)
	case taken || slices.Contains(schema.Required, c.KeyField):
		return fmt.Errorf("key field %s: the parameters have a field of that name; choose another", c.KeyField)
	}
	return nil
}

// Program returns the path of the program, or why it cannot be run.
func (c CommandConfig) Program() (string, error) {
	if len(c.Command) == 0 {
		return "", errors.New("the command is empty")
	}
	return process.Find(c.Dir, c.Command[0])
}

// resolve reads the schema of an object. A mistake is reported with its place.
func resolve(raw json.RawMessage) (*jsonschema.Resolved, error) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			before := raw[:min(int(syntax.Offset), len(raw))]
			line := 1 + bytes.Count(before, []byte("\n"))
			return nil, fmt.Errorf("not JSON: line %d, column %d: %w", line, len(before)-1-bytes.LastIndexByte(before, '\n'), err)
		}
		return nil, fmt.Errorf("no JSON schema: %w", err)
	}
	if schema.Type != "object" {
		return nil, errors.New(`no schema of an object: write "type": "object" at its top`)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("no JSON schema: %w", err)
	}
	return resolved, nil
}
