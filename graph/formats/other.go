package formats

import (
	"bytes"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"placer/graph/formats/foreign"
	"placer/graph/formats/hlo"
)

// others are the beginnings of files that people take for graphs.
func others() []struct{ magic, is string } {
	return []struct{ magic, is string }{
		{"version https://git-lfs", "a Git LFS pointer (not the model itself)"},
		{"\x28\xb5\x2f\xfd", "compressed with Zstandard"},
		{"\xfd7zXZ\x00", "compressed with xz"},
		{"BZh", "compressed with bzip2"},
		{"PK\x03\x04", "a ZIP archive (a PyTorch checkpoint, a Keras model, a NumPy archive)" + weightsOnly},
		{"\x89HDF\r\n\x1a\n", "HDF5 (a Keras model perhaps)"},
		{"\x93NUMPY", "a NumPy array"},
		{"\x89PNG", "a PNG image"},
		{"ML\xefR", "MLIR's bytecode: JAX's lower(...).as_text(debug_info=True), and Exported.mlir_module(), are the text that is read"},
		{"{ lambda", "a jaxpr: JAX's lower(...).as_text(debug_info=True) is the text that is read"},
		{"digraph", "a DOT graph"}, {"strict digraph", "a DOT graph"},
		{"<", "XML or HTML"},
	}
}

// weightsOnly says what to do about a checkpoint.
const weightsOnly = ", and a checkpoint holds weights only: export the model to ONNX, or capture it with the Python package (docs/pytorch.md), whose graph is graph.json, beside program.pt"

// other says what data looks like of what is not read, "" for anything else.
func other(data []byte) string {
	switch {
	case len(data) > 262 && string(data[257:262]) == "ustar":
		return "a tar archive"
	case len(data) >= 8 && string(data[4:8]) == "TFL3":
		return "a TensorFlow Lite model"
	case len(data) > 1 && data[0] == 0x80 && data[1] >= 2 && data[1] <= 5:
		return "a Python pickle (a PyTorch checkpoint)" + weightsOnly
	case isRunMetadata(data):
		return "TensorFlow's RunMetadata (times without a graph)"
	case foreign.HasKey(data, 8, "module_to_stage_map"):
		return "a configuration of PipeDream's stages, which pipeline --conf reads beside a profile"
	case foreign.HasKey(data, 8, "weight_map"):
		return "the index of weights in several files: the config.json beside it says more"
	case foreign.HasKey(data, 8, "ir_version", "opset_import"):
		return "an ONNX model written as JSON: its binary form is read"
	case isTuningData(data):
		return "TpuGraphs' tuning data (many HLO modules in one file)"
	}
	for _, o := range others() {
		if bytes.HasPrefix(data, []byte(o.magic)) {
			return o.is
		}
	}
	return ""
}

// isRunMetadata reports whether data begins with a StepStats that begins with the
// stats of a device, which has a name such as /job:localhost/.../gpu:0.
func isRunMetadata(data []byte) bool {
	return bytes.HasPrefix(first(first(first(data))), []byte("/job:")) || bytes.HasPrefix(first(first(first(data))), []byte("/device:"))
}

// isTuningData reports whether data begins with a message that begins with an HLO
// module.
func isTuningData(data []byte) bool {
	module := first(first(data))
	return len(module) > 0 && hlo.Sniff(module)
}

// first returns the first field of a message if that is field 1, with a length; nil
// otherwise.
func first(data []byte) []byte {
	number, kind, n := protowire.ConsumeTag(data)
	if n < 0 || number != 1 || kind != protowire.BytesType {
		return nil
	}
	b, _ := protowire.ConsumeBytes(data[n:])
	return b
}

// names lists the forms but the one called without.
func names(without string) string {
	var all []string
	for _, f := range Forms() {
		if f.Name != without {
			all = append(all, f.Name)
		}
	}
	return strings.Join(all, ", ")
}
