package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"placer/internal/fsx"
	"placer/internal/parallel"
)

// Host is what making a corpus uses of its surroundings.
type Host struct {
	Teach Teacher
	// CPU returns the processor time that the program has used, in seconds; it may be nil
	// where labels are by evaluations.
	CPU func() float64
	// Workers is how many problems are labelled at once, at least 1.
	Workers int
	// Report, if not nil, is told of every problem, one at a time.
	Report func(Progress)
}

// Progress is a problem that has just been labelled.
type Progress struct {
	*Problem
	Done, Of int
}

// Make makes the first n problems of the corpus of c in a folder, or those that are not
// there yet. When ctx ends it leaves what is whole, and returns ctx's error. Labels by
// evaluations give the same file, byte for byte, whoever was stopped how often.
func Make(ctx context.Context, folder string, n int, c Config, h Host) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if n < 1 || h.Workers < 1 {
		return fmt.Errorf("corpus: %d problems by %d workers, want at least 1", n, h.Workers)
	}
	if c.Seconds > 0 && h.CPU == nil {
		return errors.New("corpus: labels by CPU seconds need a clock of processor time")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	m, err := open(filepath.Join(folder, FileName), c)
	if err != nil {
		return err
	}
	m.host, m.of, m.meter = h, n, &meter{cpu: h.CPU}
	err = m.run(ctx)
	return errors.Join(err, m.close())
}

// making is a corpus being made. mu guards what the workers share.
type making struct {
	path  string
	host  Host
	of    int
	meter *meter

	mu    sync.Mutex
	lines *fsx.Lines
	read  reader
	next  int
	err   error
}

// open opens the file at path and reads what is there.
func open(path string, c Config) (*making, error) {
	m := &making{path: path}
	var err error
	if m.lines, err = fsx.OpenLines(path, m.read.line); err != nil {
		return nil, err
	}
	switch {
	case !m.read.begun:
		var first []byte
		if first, err = json.Marshal(c); err == nil {
			err = errors.Join(m.read.line(first), m.lines.Add(first))
		}
	case m.read.Config != c:
		err = fmt.Errorf("%s was begun with seed %d, %g CPU seconds and %d evaluations a label, not with %d, %g and %d", path,
			m.read.Seed, m.read.Seconds, m.read.Evaluations, c.Seed, c.Seconds, c.Evaluations)
	}
	if err != nil {
		return nil, errors.Join(err, m.lines.Close())
	}
	return m, nil
}

// run labels what is missing.
func (m *making) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wait parallel.Group
	for range m.host.Workers {
		wait.Go(func() {
			for {
				i, ok := m.take()
				if !ok || ctx.Err() != nil {
					return
				}
				if err := m.add(ctx, i); err != nil {
					m.fail(err)
					stop()
					return
				}
			}
		})
	}
	wait.Wait()
	if m.err != nil {
		return m.err
	}
	return ctx.Err()
}

// take returns the next problem that is missing.
func (m *making) take() (index int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.read.at[m.next] {
		m.next++
	}
	m.next++
	return m.next - 1, m.next <= m.of
}

// add draws and labels problem i and adds it to the file.
func (m *making) add(ctx context.Context, i int) error {
	x, err := m.labelled(ctx, i)
	if err != nil {
		return err
	}
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(m.read.line(line), m.lines.Add(line)); err != nil {
		return err
	}
	if m.host.Report != nil {
		m.host.Report(Progress{x, len(m.read.Problems), m.of})
	}
	return nil
}

// labelled draws and labels problem i.
func (m *making) labelled(ctx context.Context, i int) (*Problem, error) {
	m.meter.change(1)
	defer m.meter.change(-1)
	r, p, err := Draw(ctx, m.read.Seed, i)
	if err != nil {
		return nil, err
	}
	return m.label(ctx, i, r, p)
}

// fail keeps the first error.
func (m *making) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = err
	}
}

// close writes the file by index: the order in which problems were done is the workers'.
func (m *making) close() error {
	if err := m.lines.Close(); err != nil {
		return err
	}
	data, err := m.read.corpus().Bytes()
	if err != nil {
		return err
	}
	return fsx.WriteFile(m.path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
