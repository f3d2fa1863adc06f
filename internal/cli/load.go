package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"placer/graph"
	"placer/graph/train"
	"placer/hw"
	"placer/workloads"
)

// loadGraph builds or imports the graph that f names.
func (c *console) loadGraph(f *graphFlags) (*graph.Graph, error) {
	if f.workload != "" {
		g, err := workloads.Build(f.workload)
		if err != nil {
			return nil, usageError{err}
		}
		return g, nil
	}
	g, err := c.importGraph(f.file)
	if err != nil || f.train == "" {
		return g, err
	}
	config := train.Default()
	if config.Optimizer, err = train.ParseOptimizer(f.train); err != nil {
		return nil, usageError{err}
	}
	t, err := train.Derive(g, config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.file, err)
	}
	return t, nil
}

// importGraph reads the graph file at path, or stdin for "-". A JSON form starts
// with a brace; everything else is taken for ONNX.
func (c *console) importGraph(path string) (*graph.Graph, error) {
	if path == "-" {
		data, err := io.ReadAll(c.in)
		if err != nil {
			return nil, fmt.Errorf("stdin: %w", err)
		}
		if text := bytes.TrimLeft(data, " \t\r\n"); len(text) > 0 && text[0] == '{' {
			return graph.Read(bytes.NewReader(data), "stdin")
		}
		return importONNX("stdin", data)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	f.Close()
	if err != nil && err != io.ErrUnexpectedEOF {
		if err == io.EOF {
			return nil, fmt.Errorf("%s: the file is empty", path)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if text := bytes.TrimLeft(head[:n], " \t\r\n"); len(text) > 0 && text[0] == '{' || strings.HasSuffix(path, ".json") {
		return graph.ReadFile(path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return importONNX(path, data)
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
