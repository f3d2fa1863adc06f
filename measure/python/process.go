package python

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"placer/sim/schedule"
	"placer/units"
)

// Config says what process to start.
type Config struct {
	Runtime  Runtime
	Python   string // program
	Graph    string // graph file, beside which the captured program lies
	Realtime bool   // keep other processes off the cores while a step runs

	// Patience is how long an answer may take beside most times its predicted step, after which the
	// process is taken to hang and is ended; 0 is five minutes.
	Patience time.Duration
}

const (
	patience = 5 * time.Minute // torch loads and a program is read in seconds, in minutes on a busy host
	most     = 200             // a measurement takes some twenty steps, and half as many on one device
	longest  = 1e6             // seconds that steps are given at most
)

// Request says how a step is measured. Zero fields stand for the package's defaults.
type Request struct {
	Steps int    `json:"steps,omitempty"` // timed, of a round
	Clock string `json:"clock,omitempty"` // virtual or wall
	Trace bool   `json:"trace"`
	Brief bool   `json:"brief,omitempty"` // without devices, classes and trace, which take steps of their own
}

// Process is a measuring process. It is used by one goroutine at a time.
type Process struct {
	Ready   Ready
	runtime Runtime
	limit   time.Duration // Config.Patience
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	errors  *tail
	ended   error // of the process, once it has been waited for
	waited  bool
	hung    error // why it was ended, where it had not answered
}

// Start starts the process and waits until it takes requests. It reports ErrNone where
// there is no such program, framework or package. The process ends with Close or
// ctx.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	args := []string{"-m", cfg.Runtime.Package, "measure", "--graph", cfg.Graph, "--serve"}
	if cfg.Realtime {
		args = append(args, "--realtime")
	}
	p := &Process{runtime: cfg.Runtime, limit: cmp.Or(cfg.Patience, patience), command: exec.CommandContext(ctx, cfg.Python, args...), errors: &tail{}}
	p.command.Stderr = p.errors
	p.command.WaitDelay = endsWithin
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.command.Start(); err != nil {
		return nil, cfg.Runtime.none(err.Error())
	}
	if err := p.read(&p.Ready, 0); err != nil {
		p.Close()
		if ctx.Err() == nil && p.errors.missing() {
			return nil, cfg.Runtime.none(cfg.Python + ": " + p.errors.last())
		}
		return nil, err
	}
	if p.Ready.Format != readyFormat {
		p.Close()
		return nil, fmt.Errorf("%s: format is %q, want %q", cfg.Python, p.Ready.Format, readyFormat)
	}
	return p, nil
}

// Has reports devices that s uses and the process lacks, as ErrNone.
func (r *Ready) Has(s *schedule.Schedule) error {
	for _, o := range s.Ops {
		if name := s.Devices[o.Device]; !slices.Contains(r.Devices, name) {
			return r.lacks(name, "op "+o.Name+" is to run there")
		}
	}
	return nil
}

// Measure runs s. The error says why it could not be measured. A process that has not answered in
// time is ended, and every later error is that one.
func (p *Process) Measure(s *schedule.Schedule, r Request) (*Answer, error) {
	if p.hung != nil {
		return nil, p.hung
	}
	var doc, line bytes.Buffer
	if err := s.Write(&doc); err != nil {
		return nil, err
	}
	if err := json.Compact(&line, doc.Bytes()); err != nil {
		return nil, err
	}
	request, err := json.Marshal(struct {
		Request
		Schedule json.RawMessage `json:"schedule"`
	}{r, line.Bytes()})
	if err != nil {
		return nil, err
	}
	if _, err := p.in.Write(append(request, '\n')); err != nil {
		return nil, p.broken(err)
	}
	a := &Answer{}
	if err := p.read(a, s.Step); err != nil {
		return nil, err
	}
	switch {
	case a.Error != "":
		return nil, errors.New(a.Error)
	case a.Format != Format:
		return nil, fmt.Errorf("%s: format is %q, want %q", p.runtime.Package, a.Format, Format)
	case a.Step <= 0:
		return nil, fmt.Errorf("%s: a step of %v s", p.runtime.Package, a.Step)
	}
	return a, nil
}

// Close ends the process and waits for it.
func (p *Process) Close() error {
	p.in.Close()
	return p.wait()
}

// endsWithin is how long a process may take to end once its input has: it is killed then.
const endsWithin = 5 * time.Second

// wait waits for the process, whose input is closed. What it still writes, or what it has
// started does, is nobody's.
func (p *Process) wait() error {
	if !p.waited {
		p.waited = true
		late := time.AfterFunc(endsWithin, func() { _ = p.command.Process.Kill() })
		defer late.Stop()
		go func() { _, _ = io.Copy(io.Discard, p.out) }()
		p.ended = p.command.Wait()
	}
	return p.ended
}

// read reads one line as a document, of a step that is predicted to take so long.
func (p *Process) read(v any, step units.Seconds) error {
	limit := p.limit + time.Duration(min(most*float64(step), float64(longest))*float64(time.Second))
	late := time.AfterFunc(limit, func() { _ = p.command.Process.Kill() })
	line, err := p.out.ReadBytes('\n')
	if !late.Stop() {
		p.in.Close()
		_ = p.wait()
		p.hung = fmt.Errorf("%s: no answer in %v: its process hangs, or the step takes more than %d times what is predicted; the process was ended", p.runtime.Package, limit.Round(time.Second/10), most)
		return p.hung
	}
	if err != nil {
		return p.broken(err)
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("%s: %.80q is no answer: %w", p.runtime.Package, line, err)
	}
	return nil
}

// broken returns why the process ended.
func (p *Process) broken(err error) error {
	p.in.Close()
	if end := p.wait(); end != nil {
		err = end
	}
	if last := p.errors.last(); last != "" {
		return fmt.Errorf("%s (%w)", last, err)
	}
	return fmt.Errorf("%s: %w", p.runtime.Package, err)
}

// tail keeps the last lines that a process writes.
type tail struct{ kept []byte }

const tailBytes = 4096

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if n := len(t.kept) - tailBytes; n > 0 {
		t.kept = append(t.kept[:0], t.kept[n:]...)
	}
	return len(b), nil
}

// last returns the last line that says something.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(string(t.kept)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// missing reports whether Python did not find the framework or the package.
func (t *tail) missing() bool { return strings.Contains(t.last(), "No module named ") }
