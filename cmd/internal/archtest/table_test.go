package archtest

// A pattern names one package below the module, or with /... it and all below
// it. The longest pattern that fits a package speaks for it.

// room is what a package may import of our own code.
type room struct {
	path string
	may  []string
	why  string
}

var below = []string{"actors/...", "eventlog/...", "providers/...", "projections/...", "messages", "messages/reftest"}

var rooms = []room{
	{"messages", []string{"messages/cron", "messages/internal/codec", "messages/reftest"}, "if it can act, it is not a word: the words know no other package"},
	{"messages/cron", nil, "a calendar, and nothing of agents"},
	{"messages/internal/codec", nil, "bytes, and nothing of agents"},
	{"messages/reftest", nil, "it reads source as text, and is for the tests of all packages"},

	{"eventlog", []string{"messages"}, "the contract does not know who implements it"},
	{"eventlog/...", []string{"eventlog/...", "messages"}, "the rooms of the middle floor do not know one another"},
	{"providers", []string{"messages"}, "the contract does not know who implements it"},
	{"providers/tool", []string{"messages"}, "the contract does not know who implements it"},
	{"providers/...", []string{"providers/...", "messages"}, "the rooms of the middle floor do not know one another"},
	{"projections", []string{"messages"}, "a view is a fold of events and nothing else"},
	{"projections/...", []string{"projections/...", "messages"}, "the rooms of the middle floor do not know one another"},

	{"actors/turn", []string{"messages", "messages/cron", "projections", "actors/faulttest", "actors/turn/turntest"}, "the turn machine is pure: it does no I/O"},
	{"actors/turn/turntest", []string{"messages", "projections", "actors/turn"}, "a story needs nothing but the machine that it drives"},
	{"actors/...", below, "arrows point down: an actor does not know the node it lives on"},

	{"cluster/client", []string{"messages", "projections"}, "a service that only sends and reads shares the types of views, and must not link the runtime"},
	{"cluster/gateway/...", with(below, "cluster/gateway/...", "cluster/client", "cluster/ownership/...", "cluster/inbox/..."),
		"endpoints do not know how a node is put together"},
	{"cluster/clustertest/...", with(below, "cluster/..."), "tests put whole nodes together"},
	{"cluster", with(below, "cluster/..."), "a node knows every part it is made of, and no command"},
	{"cluster/...", with(below, "cluster/client", "cluster/ownership/...", "cluster/inbox/..."),
		"the parts of a node know neither the node nor its endpoints"},

	{"cmd/reprise", []string{"cmd/internal/cli"}, "main reads as a sentence"},
	{"cmd/internal/config", with(below), "a file is turned into definitions; who runs them is not its business"},
	{"cmd/internal/archtest", nil, "the judge of imports has none"},
	{"cmd/internal/pagetest", with(below, "cmd/internal/archtest", "cmd/internal/cli", "cmd/internal/config"), "pages are held to the files and commands that the program accepts"},
	{"cmd/internal/replay", []string{"messages", "projections"}, "the debugger shows views; what answers them is the command's business"},
	{"cmd/internal/cli/...", with(below, "cluster/...", "cmd/internal/..."), "the only place where concrete types meet"},
	{"cmd/examples/...", with(below, "cluster/...", "cmd/examples/..."), "an example uses what its reader can use"},
	{"cmd/bench", with(below, "cluster/...", "cmd/internal/bench", "cmd/internal/cli"), "a benchmark measures what its reader can use"},
	{"cmd/dist", with(below, "cluster", "cmd/internal/cli"), "a release holds the pages of every command; its tests ask a node for its metrics"},
	{"cmd/internal/chaos", with(below, "cluster/...", "cmd/internal/cli"), "its nodes are the program itself, in processes of the test"},
	{"cmd/...", with(below, "cluster/..."), "nothing but cmd imports cmd"},
}

// home says which packages may import a dependency.
type home struct {
	module string
	in     []string
	tests  []string // where tests may, too
	why    string
}

var homes = []home{
	{"github.com/vmihailenco/msgpack", []string{"messages", "messages/internal/codec"}, nil,
		"one place knows the bytes of the log"},
	{"github.com/nats-io/nats.go", []string{"eventlog/natslog/...", "cluster/...", "providers/nats/...", "cmd/bench", "cmd/internal/bench"}, []string{"cmd/internal/cli/...", "cmd/internal/chaos"},
		"commands speak through cluster/client; bench measures raw JetStream beside us"},
	{"github.com/nats-io/nats-server", []string{"eventlog/natslog/embedded", "eventlog/natslog/embedded/embeddedtest", "cluster/clustertest"}, []string{"eventlog/natslog/...", "cluster/...", "providers/nats/...", "cmd/dist"},
		"a service that links the log need not link a server; clustertest runs some as processes, for tests alone"},
	{"github.com/minio/highwayhash", []string{"eventlog/natslog/embedded/blocks"}, nil,
		"one place knows the server's files"},
	{"github.com/sashabaranov/go-openai", []string{"providers/openai"}, nil,
		"one package for each SDK: its types stop there"},
	{"github.com/anthropics/anthropic-sdk-go", []string{"providers/anthropic"}, nil,
		"one package for each SDK: its types stop there; no command imports it"},
	{"github.com/modelcontextprotocol/go-sdk", []string{"providers/mcp", "cmd/examples/mcp"}, []string{"actors", "cmd/internal/cli"},
		"one package for each SDK: its types stop there; tests and the example have it play the server"},
	{"gopkg.in/dnaeon/go-vcr.v4", []string{"providers/providertest/cassette"}, nil,
		"one place records what servers answered, for tests alone"},
	{"github.com/asynkron/protoactor-go", []string{"actors/...", "cluster/..."}, nil,
		"mailboxes and placement only; no other room knows that there are actors"},
	{"go.opentelemetry.io/proto", []string{"cluster/traces"}, []string{"cluster", "cmd/internal/cli"},
		"one package knows the form in which collectors take spans; no SDK is linked"},
	{"go.opentelemetry.io/otel", []string{"messages", "projections"}, nil,
		"one type, messages.TraceContext, is what other packages know of a trace; projections makes the ids of spans"},
	{"github.com/prometheus", []string{"cluster/gateway/metrics"}, []string{"cluster/..."},
		"what is counted is written in one place"},
	{"modernc.org/sqlite", []string{"projections/index"}, nil,
		"the index of all agents is kept in SQL, and nothing else is"},
	{"github.com/spf13/cobra", []string{"cmd/internal/cli/...", "cmd/bench", "cmd/dist"}, []string{"cmd/internal/pagetest"},
		"a library does not parse command lines; tests check those that pages show"},
	{"golang.org/x/term", []string{"cmd/internal/cli/..."}, nil,
		"a library does not read terminals"},
	{"charm.land/bubbletea", []string{"cmd/internal/replay"}, nil,
		"one command fills a terminal; the others write lines"},
	{"github.com/charmbracelet/x", []string{"cmd/internal/replay"}, []string{"cmd/internal/cli"},
		"it belongs to the terminal library; tests read screens with its emulator"},
	{"github.com/goccy/go-yaml", []string{"cmd/internal/config"}, []string{"cmd/internal/pagetest", "cmd/dist"},
		"one place reads files that people write; tests check those that pages show and archives hold"},
	{"github.com/anishathalye/porcupine", nil, []string{"cmd/internal/chaos"},
		"histories are checked from outside, and only in tests"},
	{"github.com/netresearch/go-cron", []string{"messages/cron"}, nil,
		"a cron line means the same at every endpoint and to every owner"},
	{"github.com/expr-lang/expr", []string{"cmd/internal/config"}, nil,
		"one place judges expressions that people write"},
}

// diet is what a package may import from outside: these modules only, and none of some
// standard packages.
type diet struct {
	path   string
	only   []string
	never  []string
	why    string
	noCall []string // of the standard library, as package.Func
}

var diets = []diet{
	{path: "actors/turn", never: []string{"context", "sync", "os", "net", "log", module + "/actors/faulttest", module + "/actors/turn/turntest", "math/rand", "crypto/rand", "io/fs", "syscall"}, noCall: []string{"time.Now", "time.Since", "time.Until", "time.After", "time.NewTimer", "time.AfterFunc", "time.Sleep"},
		why: "no clock, no context, no goroutine, no I/O: the same history always gives the same answer"},
	{path: "cluster/client", only: []string{"github.com/nats-io/nats.go"},
		why: "a service that only sends and reads must not link the runtime"},
	{path: "cmd/internal/replay", only: []string{"charm.land/bubbletea/v2", "github.com/charmbracelet/x/ansi"},
		why: "a debugger on a terminal needs a terminal library and nothing else"},
	{path: "cmd/internal/archtest", why: "the judge of imports has none"},
}

// unmeasured are packages that no table speaks for.
var unmeasured = map[string]string{}

// topLevel are the folders at the root that may hold Go code.
var topLevel = []string{"actors", "messages", "eventlog", "projections", "providers", "cmd", "cluster"}

// empty are package names that say nothing.
var empty = []string{"util", "utils", "common", "types", "helper", "helpers", "misc", "shared", "base"}

func with(paths []string, more ...string) []string {
	return append(append([]string(nil), paths...), more...)
}
