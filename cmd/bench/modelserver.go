package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	ctx context.Context
	cmd *exec.Cmd
	ask io.WriteCloser
	say *json.Decoder
}

// startModel starts one. It ends with stop, with ctx, or with this process.
func (l *lab) startModel(ctx context.Context) (*model, error) {
	m := &model{ctx: ctx, cmd: exec.CommandContext(ctx, l.ModelServer[0], l.ModelServer[1:]...)}
	m.cmd.Stderr = os.Stderr
	var err error
	if m.ask, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the model server: %w", err)
	}
	m.say = json.NewDecoder(out)
	if err := m.say.Decode(&m.addresses); err != nil || m.Stream == "" {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("the model server named no address: %v", err), m.stop())
	}
	return m, nil
}

// cpu is what the model server has used.
func (m *model) cpu() (time.Duration, error) {
	if _, err := io.WriteString(m.ask, "cpu\n"); err != nil {
		return 0, err
	}
	var seconds float64
	err := m.say.Decode(&seconds)
	return time.Duration(seconds * float64(time.Second)), err
}

// stop ends the process and waits for it.
func (m *model) stop() error {
	_ = m.ask.Close() // it ends when its input does
	if err := m.cmd.Wait(); err != nil && m.ctx.Err() == nil {
		return fmt.Errorf("the model server: %w", err)
	}
	return nil
}
