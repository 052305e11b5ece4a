// Package profile describes, as data, how model servers and the chat templates of model
// families differ in the requests that they accept.
//
// A server is found by the host of its base URL, a template by the name of the model, and
// [For] joins their rules with those of a configuration. A new server is a row in servers.go
// and a fixture of package providertest.
package profile

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Server is a model server, or a service of them.
type Server struct {
	Name string
	// Hosts are the ends of its host names: whole labels, unless one begins with a dash.
	Hosts []string
	// Templates reports whether requests are rendered by the chat template of each model,
	// so that the rules of templates apply too.
	Templates bool
	// Models are rules of single models; they come before all others.
	Models []Template
	Rules  Rules
}

// Template is the chat template of a family of models.
type Template struct {
	Name string
	// Models are patterns as of path.Match. They match the name of a model in lower case,
	// without what stands before its last slash.
	Models []string
	Rules  Rules
}

// Plain is the name of the profile of servers that are unknown. Its requests are what
// most servers accept.
const Plain = "plain"

// ByName returns the server of that name. The error lists the names that there are.
func ByName(name string) (Server, error) {
	i := slices.IndexFunc(servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return Server{}, fmt.Errorf("no profile is named %q: use one of %s", name, strings.Join(Names(), ", "))
	}
	return servers[i], nil
}

// Names returns the names of all servers.
func Names() (names []string) {
	for _, s := range servers {
		names = append(names, s.Name)
	}
	return names
}

// ByURL returns the server at a base URL: OpenAI's where it is empty, plain where the host
// is unknown.
func ByURL(base string) Server {
	if base == "" {
		base = "https://api.openai.com"
	}
	name := Plain
	if u, err := url.Parse(base); err == nil {
		host := strings.ToLower(u.Hostname())
		for _, s := range servers {
			if slices.ContainsFunc(s.Hosts, func(end string) bool {
				return host == end || strings.HasSuffix(host, "."+end) || end[0] == '-' && strings.HasSuffix(host, end)
			}) {
				name = s.Name
			}
		}
	}
	s, _ := ByName(name)
	return s
}

// TemplateOf returns the chat template of a model. It is the zero Template if it is unknown.
func TemplateOf(model string) Template { return match(templates, model) }

// match returns the first template that a model matches.
func match(list []Template, model string) Template {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, t := range list {
		for _, pattern := range t.Models {
			if ok, _ := path.Match(pattern, name); ok { // a test holds that patterns are well formed
				return t
			}
		}
	}
	return Template{}
}

// For returns the rules of requests to a server for a model. The rules own, of a
// configuration, come first; then those of the server for that model, of the model's
// template, of the server, and of plain.
func For(s Server, model string, own Rules) Rules {
	r := own.Or(match(s.Models, model).Rules)
	if s.Templates {
		r = r.Or(TemplateOf(model).Rules)
	}
	plain, _ := ByName(Plain)
	return r.Or(s.Rules).Or(plain.Rules)
}
