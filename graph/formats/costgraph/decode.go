package costgraph

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	pb "github.com/wamuir/graft/tensorflow/core/framework/cost_graph_go_proto"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Decode reads text or binary; name is the file's, for errors.
func Decode(data []byte, name string) (*pb.CostGraphDef, error) {
	def := &pb.CostGraphDef{}
	if isText(data) {
		if err := prototext.Unmarshal(data, def); err != nil {
			return nil, fmt.Errorf("%s: cost graph: %s", name, plain(err))
		}
		return def, nil
	}
	if err := proto.Unmarshal(data, def); err != nil {
		return nil, fmt.Errorf("%s: cost graph: node %d: %s", name, wholeNodes(data), plain(err))
	}
	return def, nil
}

// plain strips the protobuf library's prefix, whose spaces vary.
func plain(err error) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto:"))
}

// wholeNodes counts the nodes before the first fault of a binary file.
func wholeNodes(data []byte) (count int) {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			break
		}
		m := protowire.ConsumeFieldValue(number, kind, data[n:])
		if m < 0 {
			break
		}
		if number == 1 && kind == protowire.BytesType {
			body, _ := protowire.ConsumeBytes(data[n:])
			if proto.Unmarshal(body, &pb.CostGraphDef_Node{}) != nil {
				break
			}
			count++
		}
		data = data[n+m:]
	}
	return count
}

var (
	textStart = regexp.MustCompile(`^(\s|#.*\n)*node\s*:?\s*[{<]`)
	graphOp   = regexp.MustCompile(`(^|[\s{])op\s*:`)
	costField = regexp.MustCompile(`(^|[\s{])(id|control_input|compute_cost|is_final|temporary_memory_size)\s*:|(input_info|output_info)\s*:?\s*[{<]`)
)

func isText(data []byte) bool { return textStart.Match(data) }

// Is reports whether data looks like a CostGraphDef and not like its relative
// GraphDef, whose nodes have an op in text and inputs as strings in binary. A
// node without fields of its own decides nothing; a file must hold one that does.
func Is(data []byte) bool {
	if isText(data) {
		head := data[:min(len(data), 1<<16)]
		return !graphOp.Match(head) && (costField.Match(head) || len(bytes.TrimSpace(head)) < 64)
	}
	found := false
	for seen := 0; len(data) > 0 && seen < 64; seen++ {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return false
		}
		if number != 1 || kind != protowire.BytesType {
			return found && number == 2
		}
		node, m := protowire.ConsumeBytes(data[n:])
		if m < 0 {
			return found
		}
		is, may := isNode(node)
		if !may {
			return false
		}
		found = found || is
		data = data[n+m:]
	}
	return found
}

// isNode reports whether a message has a field that only cost graphs have, and
// whether it may be one of theirs at all.
func isNode(node []byte) (is, may bool) {
	for len(node) > 0 {
		number, kind, n := protowire.ConsumeTag(node)
		if n < 0 {
			return false, false
		}
		m := protowire.ConsumeFieldValue(number, kind, node[n:])
		if m < 0 {
			return false, false
		}
		switch number {
		case 1, 2, 4, 5:
			if kind != protowire.BytesType {
				return false, false
			}
		case 3, 6, 7, 9, 10, 11, 12, 14, 15, 16, 17:
			if kind != protowire.VarintType {
				return false, false
			}
			is = is || number == 3 || number == 9
		}
		node = node[n+m:]
	}
	return is, true
}
