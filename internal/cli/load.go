package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"placer/graph"
	"placer/graph/onnx"
	"placer/graph/train"
	"placer/hw"
	"placer/workloads"
)

// loaded is a graph with what its importer says of the file.
type loaded struct {
	*graph.Graph
	onnx *onnx.Summary // nil for other forms
}

// loadGraph builds or imports the graph that f names.
func (c *console) loadGraph(f *graphFlags) (l loaded, err error) {
	if f.workload != "" {
		if l.Graph, err = workloads.Build(f.workload); err != nil {
			return l, usageError{err}
		}
		return l, nil
	}
	config := onnx.Default()
	config.Dims = f.dims
	if l, err = c.importGraph(f.file, config); err != nil {
		return l, err
	}
	if l.onnx != nil {
		for _, n := range l.onnx.Notes {
			c.note("%s: %s", f.file, n)
		}
	}
	if f.train == "" {
		return l, nil
	}
	how := train.Default()
	if how.Optimizer, err = train.ParseOptimizer(f.train); err != nil {
		return l, usageError{err}
	}
	if l.Graph, err = train.Derive(l.Graph, how); err != nil {
		return l, fmt.Errorf("%s: %w", f.file, err)
	}
	return l, nil
}

// importGraph reads the graph file at path, or stdin for "-". What starts with a
// brace is placer's JSON form; everything else is taken for ONNX.
func (c *console) importGraph(path string, config onnx.Config) (l loaded, err error) {
	if path == "-" {
		data, err := io.ReadAll(c.in)
		switch {
		case err != nil:
			return l, fmt.Errorf("stdin: %w", err)
		case len(data) == 0:
			return l, errors.New("stdin: it is empty")
		case startsJSON(data):
			l.Graph, err = graph.Read(bytes.NewReader(data), "stdin")
		default:
			l.Graph, l.onnx, err = onnx.Import(data, "stdin", config)
		}
		return l, err
	}
	head, err := firstBytes(path)
	switch {
	case err != nil:
		return l, err
	case startsJSON(head) || strings.HasSuffix(path, ".json"):
		l.Graph, err = graph.ReadFile(path)
	default:
		l.Graph, l.onnx, err = onnx.ImportFile(path, config)
	}
	return l, err
}

func startsJSON(data []byte) bool {
	text := bytes.TrimLeft(data, " \t\r\n")
	return len(text) > 0 && text[0] == '{'
}

// firstBytes returns the head of the file at path, which must not be empty.
func firstBytes(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	if err == io.EOF {
		return nil, fmt.Errorf("%s: the file is empty", path)
	}
	if err != nil && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return head[:n], nil
}

// note writes a remark to stderr.
func (c *console) note(format string, a ...any) {
	if !c.quiet {
		fmt.Fprintf(c.err, "placer: note: "+format+"\n", a...)
	}
}

// loadMachine returns the machine that f names.
func (c *console) loadMachine(f *machineFlags) (m *hw.Machine, err error) {
	switch f.file {
	case "":
		if m, err = hw.Load(f.gpu); err != nil {
			return nil, usageError{err}
		}
	case "-":
		if m, err = hw.Read(c.in); err != nil {
			return nil, fmt.Errorf("stdin: %w", err)
		}
	default:
		if m, err = hw.ReadFile(f.file); err != nil {
			return nil, err
		}
		if f.gpus == 0 { // a machine file says itself what there is
			return m, nil
		}
	}
	gpus := f.gpus
	if gpus == 0 {
		for _, d := range m.Devices {
			if d.Kind == hw.GPU {
				gpus++
			}
		}
	}
	if m, err = m.Take(gpus, f.cpu); err != nil {
		return nil, usageError{err}
	}
	return m, nil
}
