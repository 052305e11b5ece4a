// Command foreign reads the deployment files in a folder with the parsers of those that run them:
// kubernetes.yaml strictly, with the types of the Kubernetes API, compose.yaml with the loader of
// docker compose, alerts.yaml with that of Prometheus, and each line of standard input as PromQL.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

func main() {
	dir := os.Args[1]
	if err := errors.Join(kubernetes(dir), compose(dir), alerts(dir), queries()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// kubernetes decodes each object into the type of its kind. A field that the type has not is an error.
func kubernetes(dir string) error {
	file, err := os.Open(filepath.Join(dir, "kubernetes.yaml"))
	if err != nil {
		return err
	}
	defer file.Close()
	documents := yaml.NewYAMLReader(bufio.NewReader(file))
	for n := 0; ; n++ {
		document, err := documents.Read()
		if err == io.EOF {
			fmt.Printf("%d Kubernetes objects\n", n)
			return nil
		}
		if err != nil {
			return err
		}
		var is struct{ APIVersion, Kind string }
		if err := strict.Unmarshal(document, &is); err != nil {
			return err
		}
		kinds := map[string]any{
			"v1 Namespace": &core.Namespace{}, "v1 ConfigMap": &core.ConfigMap{}, "v1 Secret": &core.Secret{}, "v1 Service": &core.Service{},
			"apps/v1 Deployment": &apps.Deployment{}, "policy/v1 PodDisruptionBudget": &policy.PodDisruptionBudget{},
		}
		kind, ok := kinds[is.APIVersion+" "+is.Kind]
		if !ok {
			return fmt.Errorf("kubernetes.yaml: no kind %s %s", is.APIVersion, is.Kind)
		}
		if err := strict.UnmarshalStrict(bytes.TrimSpace(document), kind); err != nil {
			return fmt.Errorf("kubernetes.yaml: %s: %w", is.Kind, err)
		}
	}
}

// compose loads the project, and checks it by the schema of the Compose specification.
func compose(dir string) error {
	name := filepath.Join(dir, "compose.yaml")
	project, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: dir, ConfigFiles: []types.ConfigFile{{Filename: name}},
		Environment: types.Mapping{"NATS_PASSWORD": "secret1"},
	}, func(o *loader.Options) { o.SetProjectName("reprise", true) })
	if err != nil {
		return fmt.Errorf("compose.yaml: %w", err)
	}
	fmt.Printf("%d services\n", len(project.Services))
	return nil
}

// alerts parses the rules, with their expressions and templates.
func alerts(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "alerts.yaml"))
	if err != nil {
		return err
	}
	groups, errs := rulefmt.Parse(data, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("alerts.yaml: %w", err)
	}
	fmt.Printf("%d groups of rules\n", len(groups.Groups))
	return nil
}

// queries parses each line of standard input.
func queries() error {
	var wrong []error
	lines, n := bufio.NewScanner(os.Stdin), 0
	for ; lines.Scan(); n++ {
		if _, err := parser.NewParser(parser.Options{}).ParseExpr(lines.Text()); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", lines.Text(), err))
		}
	}
	fmt.Printf("%d queries\n", n)
	return errors.Join(append(wrong, lines.Err())...)
}
