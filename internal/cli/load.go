package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"placer/graph"
	"placer/graph/costgraph"
	"placer/graph/dnnpart"
	"placer/graph/onnx"
	"placer/graph/pipedream"
	"placer/graph/train"
	"placer/hw"
	"placer/internal/foreign"
	"placer/roofline"
	"placer/sim"
	"placer/times"
	"placer/units"
	"placer/workloads"
)

// loaded is a graph with what its importer says of the file.
type loaded struct {
	*graph.Graph
	onnx *onnx.Summary // nil for other forms
	// seconds are the op times that the file gives, [N]; nil: none.
	seconds []units.Seconds
	// times are those of files that tell devices apart; nil: none.
	times *times.Table
	// settings of the roofline model; nil: the default ones.
	settings *roofline.Config
	// What exporters need of the file's own terms; nil for other forms.
	instance *dnnpart.Instance
	profile  *pipedream.Instance
}

// costs returns the times of l's ops on the devices of m: the file's, the same on
// every device, or else the roofline model's.
func (l *loaded) costs(m *hw.Machine) (sim.CostModel, error) {
	if l.times != nil {
		c, err := l.times.For(m)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	if l.seconds != nil {
		return givenTimes(l.seconds), nil
	}
	if l.settings != nil {
		return roofline.New(l.Graph, m, *l.settings)
	}
	return roofline.New(l.Graph, m, roofline.Default())
}

// givenTimes are times that do not depend on the device.
type givenTimes []units.Seconds

// OpSeconds implements sim.CostModel. The simulator wants times above 0; files
// round to microseconds.
func (t givenTimes) OpSeconds(op graph.OpID, _ int) units.Seconds { return max(t[op], 1e-9) }

// loadGraph builds or imports the graph that f names.
func (c *console) loadGraph(f *graphFlags) (l loaded, err error) {
	if l, err = c.loadOnlyGraph(f); err != nil || f.times == "" {
		return l, err
	}
	if l.times, err = times.ReadFile(f.times); err != nil {
		return l, err
	}
	if err := l.times.Check(l.Graph); err != nil {
		return l, fmt.Errorf("%s: %w", f.times, err)
	}
	return l, nil
}

func (c *console) loadOnlyGraph(f *graphFlags) (l loaded, err error) {
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
	if err := l.checkDims(f); err != nil {
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
	if l.seconds != nil || l.times != nil {
		return l, fmt.Errorf("%s: --train needs ops that it can derive, the file names none", f.file)
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

// checkDims reports dimensions that --dim gives a value and the file does not have: a
// slip in a name would leave the dimension at 1.
func (l *loaded) checkDims(f *graphFlags) error {
	switch {
	case len(f.dims) == 0:
		return nil
	case l.onnx == nil:
		return usagef("--dim is for ONNX files, %s is none", f.file)
	case len(l.onnx.UnknownDims) == 0:
		return nil
	}
	has := make([]string, len(l.onnx.Symbols))
	for i, s := range l.onnx.Symbols {
		has[i] = s.Name
	}
	if len(has) == 0 {
		return usagef("--dim %s: the inputs of %s have no named dimensions", l.onnx.UnknownDims[0], f.file)
	}
	return usagef("--dim %s: %s has no dimension of that name, want one of %s", l.onnx.UnknownDims[0], f.file, strings.Join(has, ", "))
}

// importGraph reads the graph file at path, or stdin for "-". What starts with a
// brace is placer's JSON form; what looks like a CostGraphDef is one; everything
// else is taken for ONNX.
func (c *console) importGraph(path string, config onnx.Config) (l loaded, err error) {
	if path == "-" {
		data, err := io.ReadAll(c.in)
		switch {
		case err != nil:
			return l, fmt.Errorf("stdin: %w", err)
		case len(data) == 0:
			return l, errors.New("stdin: it is empty")
		case isForeign(data):
			return importForeign(data, "stdin")
		case startsJSON(data):
			l.Graph, err = graph.Read(bytes.NewReader(data), "stdin")
		case costgraph.Is(data):
			return c.importCosts(data, "stdin")
		default:
			l.Graph, l.onnx, err = onnx.Import(data, "stdin", config)
		}
		if err != nil && l.Graph == nil && isText(data[:min(len(data), headBytes)]) && !startsJSON(data) {
			err = unknownText("stdin")
		}
		return l, err
	}
	head, err := firstBytes(path)
	switch {
	case err != nil:
		return l, err
	case startsJSON(head) || strings.HasSuffix(path, ".json"):
		data, err := foreign.ReadFile(path)
		if err != nil {
			return l, err
		}
		if isForeign(data) {
			return importForeign(data, path)
		}
		l.Graph, err = graph.Read(bytes.NewReader(data), path)
		return l, err
	default:
		if startsText(head) {
			data, err := foreign.ReadFile(path)
			if err != nil {
				return l, err
			}
			if isForeign(data) {
				return importForeign(data, path)
			}
			if costgraph.Is(data) {
				return c.importCosts(data, path)
			}
		}
		l.Graph, l.onnx, err = onnx.ImportFile(path, config)
		if err != nil && isText(head) {
			err = unknownText(path)
		}
	}
	return l, err
}

// unknownText is the error of a text that is in none of the forms that are read.
func unknownText(name string) error {
	return fmt.Errorf("%s: is text in none of the forms that are read: CostGraphDef, placer's JSON, dnn-partitioning, Piper, PipeDream, DOPPLER; ONNX files are binary", name)
}

// isText reports whether data is text: an ONNX file has tags and lengths among its
// first bytes that are not.
func isText(data []byte) bool {
	for _, b := range data {
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return true
}

// importCosts reads a CostGraphDef.
func (c *console) importCosts(data []byte, name string) (l loaded, err error) {
	im, err := costgraph.Import(data, name)
	if err != nil {
		return l, err
	}
	if im.UnknownSizes > 0 {
		c.note("%s: %d outputs of unknown size are taken for empty", name, im.UnknownSizes)
	}
	return loaded{Graph: im.Graph, seconds: im.Seconds}, nil
}

// startsText reports whether data starts as text does, or as a message in field 1,
// with which no ONNX file starts.
func startsText(data []byte) bool {
	return bytes.IndexByte([]byte(" \t\r\n#n0123456789"), data[0]) >= 0
}

func startsJSON(data []byte) bool {
	text := bytes.TrimLeft(data, " \t\r\n")
	return len(text) > 0 && text[0] == '{'
}

// headBytes is how much of a file says what form it has.
const headBytes = 64

// firstBytes returns the head of the file at path, which must not be empty.
func firstBytes(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, headBytes)
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

// load returns the graph and the machine that the flags name; the machine is
// looked at first if they name it.
func (c *console) load(from *graphFlags, on *machineFlags) (l loaded, m *hw.Machine, err error) {
	if on.named {
		if m, err = c.loadMachine(on); err != nil {
			return l, nil, err
		}
	}
	if l, err = c.loadGraph(from); err != nil {
		return l, nil, err
	}
	if m == nil {
		m, err = c.machineFor(on, l)
	}
	return l, m, err
}

// machineFor returns the machine that f names or, where it names none, that of the
// file that l was read from.
func (c *console) machineFor(f *machineFlags, l loaded) (*hw.Machine, error) {
	if l.times == nil || f.named {
		return c.loadMachine(f)
	}
	t := l.times
	if f.gpus > 0 {
		t = t.On(f.gpus)
	}
	return t.Machine()
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
