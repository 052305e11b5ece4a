package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/reprise-dev/reprise/cmd/internal/cli"
)

// read returns a file of the folder files.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("files", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// composition is what tests read of compose.yaml.
type composition struct {
	Services map[string]struct {
		Image       string
		Command     []string
		Environment map[string]string
		Volumes     []string
		Grace       string `yaml:"stop_grace_period"`
	}
	Volumes map[string]any
}

func compose(t *testing.T) (c composition) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, "compose.yaml")), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// object is what tests read of a Kubernetes object.
type object struct {
	Kind       string
	Data       map[string]string
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		Template struct {
			Spec struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct{ Args []string }
			}
		}
	}
}

// objects returns the objects of kubernetes.yaml by their kind.
func objects(t *testing.T) map[string]object {
	t.Helper()
	all, documents := make(map[string]object), yaml.NewDecoder(strings.NewReader(read(t, "kubernetes.yaml")))
	for {
		var o object
		if err := documents.Decode(&o); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[o.Kind] = o
	}
}

var (
	start = regexp.MustCompile(`(?m)^ExecStart=\S+ (.*)$`)
	grace = regexp.MustCompile(`(?m)^TimeoutStopSec=(.*)$`)
	image = regexp.MustCompile(`(?m)^CMD (.*)$`)
)

// Each file starts a node with flags that serve has, and gives it more time to stop than it may take.
func TestFlags(t *testing.T) {
	t.Parallel()
	unit := strings.ReplaceAll(read(t, "reprise.service"), "%S", "/var/lib")
	var inImage []string
	if err := json.Unmarshal([]byte(image.FindStringSubmatch(read(t, "Dockerfile"))[1]), &inImage); err != nil {
		t.Fatal(err)
	}
	deployment := objects(t)["Deployment"].Spec.Template.Spec
	for _, c := range []struct {
		name  string
		args  []string
		grace time.Duration
	}{
		{"reprise.service", strings.Fields(start.FindStringSubmatch(unit)[1]), duration(t, grace.FindStringSubmatch(unit)[1])},
		{"compose.yaml", compose(t).Services["reprise-1"].Command, duration(t, compose(t).Services["reprise-1"].Grace)},
		{"kubernetes.yaml", deployment.Containers[0].Args, time.Duration(deployment.Grace) * time.Second},
		{"Dockerfile", inImage, time.Minute},
	} {
		cmd, args, err := cli.Root().Find(c.args)
		if err != nil || cmd.Name() != "serve" {
			t.Fatalf("%s: %v runs %s, %v", c.name, c.args, cmd.Name(), err)
		}
		if err := cmd.ParseFlags(args); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if limit, err := cmd.Flags().GetDuration("drain-limit"); err != nil || c.grace < limit+10*time.Second {
			t.Errorf("%s: %v to stop, and --drain-limit is %v, %v", c.name, c.grace, limit, err)
		}
		if http := cmd.Flags().Lookup("http").Value.String(); !strings.HasSuffix(http, ":8080") {
			t.Errorf("%s: --http is %s", c.name, http)
		}
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The reprise.yaml of the ConfigMap passes reprise check, and reads variables that the Secret has.
func TestConfigMap(t *testing.T) {
	all := objects(t)
	for name := range all["Secret"].StringData {
		t.Setenv(name, "x")
	}
	file := filepath.Join(t.TempDir(), "reprise.yaml")
	if err := os.WriteFile(file, []byte(all["ConfigMap"].Data["reprise.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := cli.Main([]string{"reprise", "check", file}, strings.NewReader(""), &out, &errs); code != 0 {
		t.Errorf("exit code %d: %s%s", code, &out, &errs)
	}
}

// The NATS servers of compose.yaml force to disk what they acknowledge, find one another and are
// those that nodes log in to.
func TestServersOfCompose(t *testing.T) {
	t.Setenv("SERVER_NAME", "nats-1")
	t.Setenv("NATS_PASSWORD", "secret1")
	c := compose(t)
	o, err := server.ProcessConfigFile(filepath.Join("files", "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if !o.JetStream || !o.SyncAlways || o.ServerName != "nats-1" || len(o.Routes) != 3 {
		t.Errorf("JetStream %v, sync always %v, name %s, routes %v", o.JetStream, o.SyncAlways, o.ServerName, o.Routes)
	}
	url := os.Expand(c.Services["reprise-1"].Environment["NATS_URL"], func(name string) string { return os.Getenv(strings.TrimSuffix(name, ":?")) })
	for i, r := range o.Routes {
		service, ok := c.Services[r.Hostname()]
		login := "nats://" + o.Username + ":" + o.Password + "@" + r.Hostname() + ":4222"
		if !ok || service.Environment["SERVER_NAME"] != r.Hostname() || strings.Split(url, ",")[i] != login {
			t.Errorf("route %s: service %v, want %s in %s", r, service, login, url)
		}
	}
	for name, service := range c.Services {
		for _, v := range service.Volumes {
			source, target, _ := strings.Cut(v, ":")
			if _, ok := c.Volumes[source]; !ok && !strings.HasPrefix(source, "./") {
				t.Errorf("%s: there is no volume %s", name, source)
			}
			if strings.HasPrefix(name, "nats-") && source == name && target != o.StoreDir {
				t.Errorf("%s: the store is in %s, the volume on %s", name, o.StoreDir, target)
			}
		}
	}
}

// systemd accepts the unit, where there is a systemd to ask.
func TestUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	file := filepath.Join(t.TempDir(), "reprise.service")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := strings.ReplaceAll(read(t, "reprise.service"), "/usr/local/bin/reprise", self)
	if err := os.WriteFile(file, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
