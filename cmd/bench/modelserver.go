package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/reprise-dev/reprise/providers/providertest"
)

// addresses are what a model server prints first: one base URL whose answers
// are streamed and one whose answers come whole.
type addresses struct{ Stream, Whole string }

// serveModel serves a scripted model over HTTP until in ends. To each line it
// reads it answers with the CPU seconds it has used.
func serveModel(ctx context.Context, in io.Reader, out io.Writer) error {
	script := providertest.TwoStep(toolName, toolInput)
	config := providertest.Config{Lenient: true, Forget: true}
	stream, err := providertest.Start(script, config)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	whole, err := providertest.Start(func(r *providertest.Request) providertest.Answer {
		a := script(r)
		a.Whole = true
		return a
	}, config)
	if err != nil {
		return err
	}
	defer func() { _ = whole.Close() }()
	tell := json.NewEncoder(out)
	if err := tell.Encode(addresses{stream.URL, whole.URL}); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for ctx.Err() == nil && lines.Scan() {
		if err := tell.Encode(cpuTime().Seconds()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// model is a model server in a process of its own, so that its CPU is not ours.
type model struct {
	addresses
	*process
}

// startModel starts one. It ends with stop, with ctx, or with this process.
func (l *lab) startModel(ctx context.Context) (*model, error) {
	p, err := l.child(ctx, modelServer)
	if err != nil {
		return nil, err
	}
	m := &model{process: p}
	if err := p.ready(&m.addresses); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return m, nil
}

// cpu is what the model server has used.
func (m *model) cpu() (time.Duration, error) {
	var seconds float64
	err := m.ask("cpu", &seconds)
	return time.Duration(seconds * float64(time.Second)), err
}
