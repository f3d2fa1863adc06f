package formats

import (
	"bytes"
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// others are the beginnings of files that people take for graphs.
func others() []struct{ magic, is string } {
	return []struct{ magic, is string }{
		{"version https://git-lfs", "a Git LFS pointer (not the model itself)"},
		{"\x28\xb5\x2f\xfd", "compressed with Zstandard"},
		{"\xfd7zXZ\x00", "compressed with xz"},
		{"BZh", "compressed with bzip2"},
		{"PK\x03\x04", "a ZIP archive (a PyTorch checkpoint, a Keras model, a NumPy archive)"},
		{"\x89HDF\r\n\x1a\n", "HDF5 (a Keras model perhaps)"},
		{"\x93NUMPY", "a NumPy array"},
		{"\x89PNG", "a PNG image"},
		{"digraph", "a DOT graph"}, {"strict digraph", "a DOT graph"},
		{"<", "XML or HTML"},
	}
}

var graphDefText = regexp.MustCompile(`^\s*node\s*\{[^{}]*\bop\s*:`)

// other says what data looks like of what is not read, "" for anything else.
func other(data []byte) string {
	switch {
	case len(data) > 262 && string(data[257:262]) == "ustar":
		return "a tar archive"
	case len(data) >= 8 && string(data[4:8]) == "TFL3":
		return "a TensorFlow Lite model"
	case len(data) > 1 && data[0] == 0x80 && data[1] >= 2 && data[1] <= 5:
		return "a Python pickle (a PyTorch checkpoint)"
	case graphDefText.Match(data[:min(len(data), 1<<12)]), isGraphDef(data):
		return "TensorFlow's GraphDef (it has no shapes)"
	}
	for _, o := range others() {
		if bytes.HasPrefix(data, []byte(o.magic)) {
			return o.is
		}
	}
	return ""
}

// isGraphDef reports whether data begins with a node of a binary GraphDef: a message
// in field 1 with a name and an operator.
func isGraphDef(data []byte) bool {
	number, kind, n := protowire.ConsumeTag(data)
	if n < 0 || number != 1 || kind != protowire.BytesType {
		return false
	}
	node, n := protowire.ConsumeBytes(data[n:])
	for want := protowire.Number(1); n > 0 && want <= 2; want++ {
		number, kind, n = protowire.ConsumeTag(node)
		if n < 0 || number != want || kind != protowire.BytesType {
			return false
		}
		text, m := protowire.ConsumeString(node[n:])
		if m < 0 || text == "" {
			return false
		}
		node = node[n+m:]
	}
	return n > 0
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
