package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/reprise-dev/reprise/providers/profile"
)

// use is an agent's mention of a provider in its model.
type use struct {
	provider string
	model    *node
}

// providers reads the section, then holds the agents' models against it.
func (r *reader) providers(n *node) {
	names := []string{DemoProvider}
	if n != nil {
		r.entries(n, "providers", func(f field) {
			names = append(names, f.name)
			r.config.Providers = append(r.config.Providers, r.provider(f))
		})
	}
	slices.Sort(names)
	for _, m := range r.models {
		if !slices.Contains(names, m.provider) {
			r.add(m.model.at, r.missingProvider(m.provider, names), "no provider is called %s", r.fromModel(m))
		}
	}
}

func (r *reader) missingProvider(name string, names []string) string {
	if name == "openai" {
		return "add providers: {openai: {api_key: \"${OPENAI_API_KEY}\"}}"
	}
	return meant(name, names, "providers")
}

// fromModel is the name of a model's provider, unless it came from a variable.
func (r *reader) fromModel(m use) string {
	if strings.Contains(m.model.text, "${") {
		return "as in " + shown(strings.NewReplacer("${", "", "}", "").Replace(m.model.text))
	}
	return shown(m.provider)
}

func (r *reader) provider(f field) ProviderConfig {
	p := ProviderConfig{Name: f.name}
	p.Used = slices.ContainsFunc(r.models, func(m use) bool { return m.provider == f.name })
	if !wordOf(f.name, 64) {
		r.add(f.at, "rename it: 1 to 64 of A-Z a-z 0-9 _ -", "a provider cannot be called %s", shown(f.name))
	}
	if f.name == DemoProvider {
		r.add(f.at, "choose another name", "the provider demo is built in")
	}
	r.lenient = !p.Used
	defer func() { r.lenient = false }()
	var key *node
	var noURL bool
	var api profile.Value
	r.fields(f.value, &providerKeys, "provider "+shown(f.name), map[string]func(*node){
		"api_key": func(n *node) { key = n },
		"base_url": func(n *node) {
			before := len(r.found)
			p.BaseURL = r.baseURL(n)
			noURL = p.BaseURL == "" && len(r.found) == before
		},
		"api":        func(n *node) { api = r.api(n) },
		"type":       func(n *node) { r.word(n, "type", []string{"openai"}) },
		"profile":    func(n *node) { p.Profile, _ = r.word(n, "profile", profile.Names()) },
		"rules":      func(n *node) { p.Rules = r.rules(n) },
		"headers":    func(n *node) { p.Headers = r.headers(n) },
		"query":      func(n *node) { p.Query = r.query(n) },
		"extra_body": func(n *node) { p.ExtraBody = r.extraBody(n) },
		"timeout":    r.duration("timeout", &p.Timeout),
	})
	p.Rules.API = api
	if p.Used && f.name != ownServer && p.Profile != ownServer {
		r.elsewhere(f, noURL, p.Profile)
	}
	p.APIKey = r.key(f, key, p)
	return p
}

// elsewhere reports a provider whose base_url is empty, or that has none although its profile or
// its name is that of another server than OpenAI's.
func (r *reader) elsewhere(f field, noURL bool, server string) {
	base := f.value.get("base_url")
	switch {
	case noURL:
		r.add(base.at, "set the variable, or remove base_url if OpenAI's own server is meant",
			"base_url of provider %s is empty, and its key would be sent to OpenAI", shown(f.name))
	case base == nil && (server != "" || slices.Contains(profile.Names(), f.name)):
		r.add(f.at, "add base_url", "provider %s has no base_url, and its key would be sent to OpenAI", shown(f.name))
	}
}

// ownServer is the profile of the server that is asked where no base_url is given, and the name
// of providers for which an empty base_url means it.
const ownServer = "openai"

// api reads the API of a provider; "" for auto, which leaves it to the profile.
func (r *reader) api(n *node) profile.Value {
	s, ok := r.word(n, "api", []string{"auto", string(profile.Chat), string(profile.Responses)})
	if !ok || s == "auto" {
		return ""
	}
	return profile.Value(s)
}

// essentialMembers are members of messages and tool calls that a provider writes itself.
var essentialMembers = []string{"role", "content", "tool_calls", "tool_call_id", "id", "type", "function"}

// rules reads the rules that come before those of a provider's profile.
func (r *reader) rules(n *node) (rules profile.Rules) {
	readers := map[string]func(*node){
		"refused": func(n *node) {
			rules.Refused = []string{}
			r.list(n, "refused", "[seed, temperature]", func(item *node, s string) {
				if !slices.Contains(settings, s) {
					r.add(item.at, meant(s, settings, "settings"), "refused names %s, which is no setting", shown(item.text))
				}
				rules.Refused = append(rules.Refused, s)
			})
		},
		"echo": func(n *node) {
			rules.Echo = []string{}
			r.list(n, "echo", "[extra_content]", func(item *node, s string) {
				if slices.Contains(essentialMembers, s) {
					r.add(item.at, "remove it", "echo names %s, which each request writes anyway", s)
				}
				rules.Echo = append(rules.Echo, s)
			})
		},
	}
	for _, f := range profile.Fields() {
		readers[f.Name] = func(n *node) {
			if s, ok := r.text(n, f.Name); ok {
				if err := f.Set(&rules, profile.Value(s)); err != nil {
					r.add(n.at, "use "+f.Allowed(), "%s cannot be %s", f.Name, shown(s))
				}
			}
		}
	}
	r.fields(n, &ruleKeys, "rules", readers)
	return rules
}

// headers reads the headers of every request.
func (r *reader) headers(n *node) map[string]Secret {
	headers := make(map[string]Secret)
	r.entries(n, "headers", func(f field) {
		value, ok := r.text(f.value, "header "+shown(f.name))
		switch {
		case !ok:
		case f.name == "" || strings.ContainsFunc(f.name, notHeaderName):
			r.add(f.at, "use letters, digits and -", "%s cannot be the name of a header", shown(f.name))
		case strings.ContainsFunc(value, unicode.IsControl):
			r.add(f.value.at, "remove line breaks and control characters", "header %s has a value that cannot be sent", shown(f.name))
		default:
			headers[f.name] = Secret(value)
		}
	})
	return headers
}

// notHeaderName reports whether c cannot be part of the name of a header (RFC 9110, 5.6.2).
func notHeaderName(c rune) bool {
	return c >= unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}

// query reads the query parameters of every request.
func (r *reader) query(n *node) map[string]Secret {
	query := make(map[string]Secret)
	r.entries(n, "query", func(f field) {
		if value, ok := r.text(f.value, "query "+shown(f.name)); ok {
			query[f.name] = Secret(value)
		}
	})
	return query
}

// key is a provider's key. A used provider needs one, unless the file sends it
// to a server of its own and names no key or an empty one.
func (r *reader) key(f field, n *node, p ProviderConfig) Secret {
	if n == nil {
		if p.Used && p.BaseURL == "" && (f.value.kind == mapping || f.value.kind == empty) {
			r.keyless(f.at, f.name, "none is written", "add api_key: \"${"+keyVariable(f.name)+"}\", or")
		}
		return ""
	}
	if name, only := onlyVariable(n.text); only && n.kind == text && p.Used {
		if _, set := r.env(name); !set {
			r.keyless(n.at, f.name, "the variable "+name+" is not set", "set it, or write ${"+name+":-} for a server of your own that wants none, or")
			return ""
		}
	}
	s, ok := r.text(n, "api_key")
	switch {
	case !ok:
	case s == "" && p.Used && p.BaseURL == "":
		r.keyless(n.at, f.name, "api_key is empty", "fill it, or")
	case strings.ContainsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || c < '!' || c > '~' }):
		r.add(n.at, "copy the key again", "api_key holds a space, a line break or a letter that no key has")
	}
	return Secret(s)
}

// keyless reports a provider that agents use and that has no key.
func (r *reader) keyless(at place, name, why, do string) {
	var kinds []string
	for _, a := range r.config.Agents {
		if slices.ContainsFunc(a.models(), func(model string) bool { return strings.HasPrefix(model, name+"/") }) {
			kinds = append(kinds, a.Kind)
		}
	}
	who := fmt.Sprintf("agent %s", kinds[0])
	switch n := len(kinds); {
	case n > 4:
		who = fmt.Sprintf("agents %s and %d more", strings.Join(kinds[:3], ", "), n-3)
	case n > 1:
		who = "agents " + strings.Join(kinds, ", ")
	}
	r.add(at, do+" give the model demo/demo to try without a key", "provider %s has no key (%s), so %s cannot run", shown(name), why, who)
}

func keyVariable(provider string) string {
	return strings.ToUpper(strings.ReplaceAll(provider, "-", "_")) + "_API_KEY"
}

// baseURL is where a provider is reached; empty for the provider's own, which a
// lone variable that is not set means too.
func (r *reader) baseURL(n *node) string {
	if name, only := onlyVariable(n.text); only {
		if _, set := r.env(name); !set {
			return ""
		}
	}
	r.unset = false
	s, ok := r.text(n, "base_url")
	if !ok || s == "" {
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		if !r.unset {
			r.add(n.at, "write one such as https://api.openai.com/v1", "base_url is not an http or https address")
		}
	case u.User != nil:
		r.add(n.at, "give the key as api_key", "base_url has a user name or password in it")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		r.add(n.at, "end it before the ? or #, and give a key as api_key", "base_url has a query or a fragment in it, which paths cannot follow")
	}
	return s
}
