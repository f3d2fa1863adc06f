package formats

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/formats/costgraph"
	"placer/graph/formats/decoder"
	"placer/graph/formats/dnnpart"
	"placer/graph/formats/doppler"
	"placer/graph/formats/foreign"
	"placer/graph/formats/hlo"
	"placer/graph/formats/onnx"
	"placer/graph/formats/pipedream"
	"placer/graph/formats/piper"
	"placer/graph/formats/tensorflow"
	"placer/graph/formats/times"
	"placer/graph/formats/torchtrace"
	"placer/internal/words"
)

// Form is one of the forms that graph files come in.
type Form struct {
	Name string // as messages list it
	Doc  string // whose it is, and what it holds
	// Machine says that its files carry op times and the machine they hold for.
	Machine bool
	// Rows says that gradients of what its graphs look up list rows (train.Config.DenseTables).
	Rows bool
	// Sized says that its graphs have a size for every dimension, the batch included: a
	// framework that derives their training step needs no arithmetic on shapes.
	Sized bool
	// header says that only its head is read, however long the file is.
	header bool

	sniff func(data []byte) bool // on the whole file, which is not empty
	read  func(data []byte, name string, cfg onnx.Config) (*File, error)
}

// onnxName is the one form that is not read whole, and not text.
const onnxName = "ONNX"

// ownName is placer's own form.
const ownName = "placer's JSON"

// Forms lists the forms that are read. At most one of them recognises a file.
func Forms() []Form {
	return []Form{
		{Name: "CostGraphDef", Doc: "TensorFlow's cost graph, text or binary: ops, sizes of outputs, microseconds", sniff: costgraph.Is, read: readCostGraph},
		{Name: ownName, Doc: "placer graph 1 (docs/formats.md)", sniff: isOwn, read: readOwn},
		{Name: "dnn-partitioning", Doc: "JSON instances of Tarnawski et al., NeurIPS 2020", Machine: true, sniff: dnnpart.Sniff, read: readPartitioning},
		{Name: "Piper", Doc: "JSON graphs of Tarnawski et al., NeurIPS 2021", Machine: true, sniff: piper.Sniff, read: instance(piper.Import)},
		{Name: "PipeDream", Doc: "text profiles of Narayanan et al., SOSP 2019", Machine: true, sniff: isProfile, read: readProfile},
		{Name: "DOPPLER", Doc: "text task graphs of DOPPLER, ICLR 2026", Machine: true, sniff: doppler.Sniff, read: instance(doppler.Import)},
		{Name: "HLO", Doc: "XLA's modules, text or HloModuleProto: shapes and operators, no times", sniff: hlo.Sniff, read: module(hlo.Import)},
		{Name: "StableHLO", Doc: "text of MLIR with StableHLO's operators", sniff: hlo.SniffStable, read: module(hlo.ImportStable)},
		{Name: "GraphDef", Doc: "TensorFlow's graphs: GraphDef, MetaGraphDef, SavedModel, TensorFlow.js's model.json", Rows: true, sniff: tensorflow.Sniff, read: readTensorFlow},
		{Name: "GGUF", Doc: "the header of ggml's models: a decoder's step", Sized: true, header: true, sniff: decoder.SniffGGUF, read: step(decoder.ImportGGUF)},
		{Name: "safetensors", Doc: "the header of Hugging Face's weights: a decoder's step", Sized: true, header: true, sniff: decoder.SniffSafetensors, read: step(decoder.ImportSafetensors)},
		{Name: "config.json", Doc: "Hugging Face's sizes of a model: a decoder's step", Sized: true, sniff: decoder.SniffConfig, read: step(decoder.ImportConfig)},
		{Name: "execution trace", Doc: "PyTorch's operators with their tensors, schema 1.0 and Chakra's 1.1", sniff: torchtrace.SniffExecution, read: trace(torchtrace.ImportExecution)},
		{Name: "Kineto trace", Doc: "PyTorch's operators and kernels with their times, in Chrome's form", sniff: torchtrace.SniffKineto, read: trace(torchtrace.ImportKineto)},
		{Name: onnxName, Doc: "models as protocol buffers: shapes and operators, no times", Sized: true, sniff: isONNX, read: readONNX},
	}
}

// isOwn reports whether data is a JSON object that says so in its first key, as those
// that we write do, or one that no other program's form claims.
func isOwn(data []byte) bool {
	if foreign.HasKey(data, 1, "format") && !tensorflow.Sniff(data) {
		return true
	}
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) && !dnnpart.Sniff(data) && !piper.Sniff(data) && !decoder.SniffConfig(data) && !tensorflow.Sniff(data) &&
		!torchtrace.SniffExecution(data) && !torchtrace.SniffKineto(data) && other(data) == ""
}

func isProfile(data []byte) bool { return pipedream.Sniff(data) && !isOwn(data) && !isBinary(data) }

// isONNX takes whatever is not text and nothing that is known: any bytes may begin a
// protocol buffer.
func isONNX(data []byte) bool {
	return isBinary(data) && !costgraph.Is(data) && !hlo.Sniff(data) && !tensorflow.Sniff(data) && !decoder.SniffGGUF(data) && !decoder.SniffSafetensors(data) && other(data) == ""
}

// isBinary reports whether data is no text: an ONNX file has tags and lengths among
// its first bytes that are not.
func isBinary(data []byte) bool {
	return bytes.ContainsFunc(data[:min(len(data), 64)], func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f
	})
}

func readCostGraph(data []byte, name string, _ onnx.Config) (*File, error) {
	x, err := costgraph.Import(data, name)
	if err != nil {
		return nil, err
	}
	f := &File{Graph: x.Graph, Seconds: x.Seconds}
	if x.UnknownSizes > 0 {
		f.Notes = []string{fmt.Sprintf("%s taken for empty", words.Count(x.UnknownSizes, "output of unknown size is", "outputs of unknown size are"))}
	}
	return f, nil
}

func readOwn(data []byte, name string, cfg onnx.Config) (*File, error) {
	g, dims, err := graph.ReadAt(data, name, cfg.Dims)
	if err != nil {
		return nil, err
	}
	if g.Name() == "" {
		g = g.Named(baseName(name))
	}
	f := &File{Graph: g, Sizes: map[string]int64{}}
	for _, d := range dims {
		f.Dims, f.Sizes[d.Name] = append(f.Dims, d.Name), d.Size
	}
	f.UnknownDims = unknown(cfg.Dims, f.Dims)
	return f, nil
}

// baseName is what a graph without a name of its own is called: its file, without folder
// and extension.
func baseName(name string) string {
	base := filepath.Base(name)
	return cmp.Or(strings.TrimSuffix(base, filepath.Ext(base)), base)
}

func readPartitioning(data []byte, name string, _ onnx.Config) (*File, error) {
	x, err := dnnpart.Import(data, name)
	if err != nil {
		return nil, err
	}
	return &File{Graph: x.Graph, Times: x.Times, Partitioning: x}, nil
}

func readProfile(data []byte, name string, _ onnx.Config) (*File, error) {
	x, err := pipedream.Import(data, name)
	if err != nil {
		return nil, err
	}
	return &File{Graph: x.Graph, Times: x.Times, Profile: x}, nil
}

// instance makes a reader of an importer that gives a graph and times alone.
func instance(read func(data []byte, name string) (*times.Instance, error)) func([]byte, string, onnx.Config) (*File, error) {
	return func(data []byte, name string, _ onnx.Config) (*File, error) {
		x, err := read(data, name)
		if err != nil {
			return nil, err
		}
		return &File{Graph: x.Graph, Times: x.Times}, nil
	}
}

// module makes a reader of an importer of XLA's modules.
func module(read func([]byte, string, map[string]int64) (*graph.Graph, *hlo.Summary, error)) func([]byte, string, onnx.Config) (*File, error) {
	return func(data []byte, name string, cfg onnx.Config) (*File, error) {
		g, x, err := read(data, name, cfg.Dims)
		if err != nil {
			return nil, err
		}
		return &File{Graph: g, Notes: x.Notes, Counts: Counts{x.Instructions, x.Edges}, Dims: x.Loops, UnknownDims: unknown(cfg.Dims, x.Loops)}, nil
	}
}

// step makes a reader of an importer of models that serve.
func step(read func([]byte, string, decoder.Options) (*decoder.Imported, error)) func([]byte, string, onnx.Config) (*File, error) {
	return func(data []byte, name string, cfg onnx.Config) (*File, error) {
		x, err := read(data, name, decoder.Options{Dims: cfg.Dims, Training: cfg.Training})
		if err != nil {
			return nil, err
		}
		return &File{Graph: x.Graph, Notes: x.Notes, Counts: Counts{Nodes: x.Weights}, Dims: x.Dims, UnknownDims: x.UnknownDims}, nil
	}
}

// trace makes a reader of an importer of PyTorch's traces.
func trace(read func([]byte, string) (*torchtrace.Imported, error)) func([]byte, string, onnx.Config) (*File, error) {
	return func(data []byte, name string, _ onnx.Config) (*File, error) {
		x, err := read(data, name)
		if err != nil {
			return nil, err
		}
		return &File{Graph: x.Graph, Seconds: x.Seconds, Notes: x.Notes, Counts: Counts{x.Nodes, x.Edges}}, nil
	}
}

func readTensorFlow(data []byte, name string, cfg onnx.Config) (*File, error) {
	x, err := tensorflow.Import(data, name, cfg.Dims)
	if err != nil {
		return nil, err
	}
	return &File{Graph: x.Graph, Notes: x.Notes, Counts: Counts{x.Nodes, x.Edges}, Dims: x.Dims, UnknownDims: x.UnknownDims}, nil
}

// unknown returns the names of dims that are not among has.
func unknown(dims map[string]int64, has []string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(dims)) {
		if !slices.Contains(has, name) {
			list = append(list, name)
		}
	}
	return list
}

func readONNX(data []byte, name string, cfg onnx.Config) (*File, error) {
	g, x, err := onnx.Import(data, name, cfg)
	if err != nil {
		return nil, err
	}
	f := &File{Graph: g, ONNX: x, Notes: x.Notes, UnknownDims: x.UnknownDims}
	for _, s := range x.Symbols {
		f.Dims = append(f.Dims, s.Name)
	}
	return f, nil
}
