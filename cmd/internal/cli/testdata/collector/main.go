// Command collector is the OpenTelemetry collector with its receiver of OTLP, which prints what it
// takes. Its argument is the address to listen on.
package main

import (
	"log"
	"os"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

const config = `yaml:
receivers: {otlp: {protocols: {http: {endpoint: "ADDRESS"}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [debug]}}
`

func factories() (otelcol.Factories, error) {
	r, e := otlpreceiver.NewFactory(), debugexporter.NewFactory()
	return otelcol.Factories{
		Receivers: map[component.Type]receiver.Factory{r.Type(): r},
		Exporters: map[component.Type]exporter.Factory{e.Type(): e},
		Telemetry: otelconftelemetry.NewFactory(),
	}, nil
}

func main() {
	cmd := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Version: "1"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()}, DefaultScheme: "yaml",
		}},
	})
	cmd.SetArgs([]string{"--config", strings.Replace(config, "ADDRESS", os.Args[1], 1)})
	if err := cmd.Execute(); err != nil {
		log.Fatal(err)
	}
}
