package tensorflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	graphpb "github.com/wamuir/graft/tensorflow/core/framework/graph_go_proto"
	corepb "github.com/wamuir/graft/tensorflow/core/protobuf/for_core_protos_go_proto"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"placer/graph/formats/foreign"
)

// file is a decoded file: its graph, the shapes of weights that are elsewhere, and which
// variables are trained and what is computed, as far as the file says.
type file struct {
	def       *graphpb.GraphDef
	weights   map[string][]int64
	trainable map[string]bool
	signature signed
}

// describe takes what a MetaGraphDef says beside its graph.
func (f *file) describe(meta *corepb.MetaGraphDef) (err error) {
	f.trainable = trainableIn(meta)
	f.signature, err = signatureIn(meta)
	return err
}

var (
	graphText = regexp.MustCompile(`^(\s|#.*\n)*(node|library|versions)\s*:?\s*\{`)
	nodeText  = regexp.MustCompile(`(^|[\s{])op\s*:`)
	metaText  = regexp.MustCompile(`^(\s|#.*\n)*(meta_info_def|graph_def|saved_model_schema_version|meta_graphs)\s*:?`)
)

// Sniff reports whether data is a GraphDef, a MetaGraphDef, a SavedModel or a graph
// model of TensorFlow.js.
func Sniff(data []byte) bool {
	head := data[:min(len(data), 1<<16)]
	switch {
	case graphText.Match(head):
		return nodeText.Match(head)
	case metaText.Match(head):
		return bytes.Contains(head, []byte("meta_info_def")) || bytes.Contains(head, []byte("graph_def"))
	case isModelJSON(data):
		return true
	}
	graph, _ := graphIn(data)
	return graph != nil
}

// isModelJSON reports whether data is a model.json of TensorFlow.js with a graph.
func isModelJSON(data []byte) bool {
	return len(data) < 1<<28 && bytes.Contains(data, []byte(`"modelTopology"`)) && foreign.HasKey(data, 10, "modelTopology")
}

// graphIn returns the bytes of the GraphDef in a binary file; nil where it is none.
func graphIn(data []byte) (graph []byte, err error) {
	if isGraphDef(data) {
		return data, nil
	}
	if meta := submessage(data, 2); meta != nil { // SavedModel.meta_graphs, or MetaGraphDef.graph_def
		if isGraphDef(meta) {
			return meta, nil
		}
		if graph := submessage(meta, 2); graph != nil && isGraphDef(graph) {
			return graph, nil
		}
	}
	return nil, fmt.Errorf("it has no graph")
}

// submessage returns the first field of that number, nil where there is none or data is
// no message.
func submessage(data []byte, want protowire.Number) []byte {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil
		}
		m := protowire.ConsumeFieldValue(number, kind, data[n:])
		if m < 0 {
			return nil
		}
		if number == want && kind == protowire.BytesType {
			b, _ := protowire.ConsumeBytes(data[n:])
			return b
		}
		data = data[n+m:]
	}
	return nil
}

// besideGraph returns what a binary MetaGraphDef says beside its graph: collections,
// signatures and objects. Of what is none it is empty.
func besideGraph(data []byte) *corepb.MetaGraphDef {
	var kept []byte
	for rest := data; len(rest) > 0; {
		number, _, n := protowire.ConsumeField(rest)
		if n < 0 {
			break
		}
		if number == 4 || number == 5 || number == 7 {
			kept = append(kept, rest[:n]...)
		}
		rest = rest[n:]
	}
	meta := &corepb.MetaGraphDef{}
	if proto.Unmarshal(kept, meta) != nil {
		return &corepb.MetaGraphDef{}
	}
	return meta
}

// isGraphDef reports whether data begins with a node that has a name and an operator,
// which are no more than words.
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
		if m < 0 || text == "" || foreign.Clean(text) != text {
			return false
		}
		node = node[n+m:]
	}
	for n > 0 && len(node) > 0 { // what follows are inputs, the device, attributes
		number, kind, n = protowire.ConsumeTag(node)
		if n < 0 || number < 3 || number > 7 || kind != protowire.BytesType {
			return false
		}
		m := protowire.ConsumeFieldValue(number, kind, node[n:])
		if m < 0 {
			return false
		}
		if text, _ := protowire.ConsumeString(node[n:]); number == 3 && (text == "" || foreign.Clean(text) != text) {
			return false
		}
		node = node[n+m:]
	}
	return n > 0
}

// decode reads a file in any of the forms.
func decode(data []byte) (*file, error) {
	f := &file{def: &graphpb.GraphDef{}}
	head := data[:min(len(data), 1<<16)]
	switch {
	case graphText.Match(head):
		return f, plain(prototext.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, f.def))
	case metaText.Match(head):
		if bytes.Contains(head, []byte("saved_model_schema_version")) {
			saved := &corepb.SavedModel{}
			if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, saved); err != nil {
				return nil, plain(err)
			}
			if len(saved.MetaGraphs) == 0 {
				return nil, fmt.Errorf("the SavedModel has no graph")
			}
			f.def = saved.MetaGraphs[0].GraphDef
			if err := f.describe(saved.MetaGraphs[0]); err != nil {
				return nil, err
			}
		} else {
			meta := &corepb.MetaGraphDef{}
			if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, meta); err != nil {
				return nil, plain(err)
			}
			f.def = meta.GraphDef
			if err := f.describe(meta); err != nil {
				return nil, err
			}
		}
		if f.def == nil {
			return nil, fmt.Errorf("it has no graph")
		}
		return f, nil
	case isModelJSON(data):
		return modelJSON(data)
	}
	graph, err := graphIn(data)
	if err != nil {
		return nil, err
	}
	if !isGraphDef(data) {
		meta := data
		if inner := submessage(data, 2); !isGraphDef(inner) {
			meta = inner // of a SavedModel
		}
		if err := f.describe(besideGraph(meta)); err != nil {
			return nil, err
		}
	}
	return f, plain(proto.Unmarshal(graph, f.def))
}

// plain strips the protobuf library's prefix, whose spaces vary.
func plain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s", foreign.Brief(strings.TrimSpace(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto:"))))
}

// modelJSON reads a model.json: the topology is a GraphDef in JSON, the shapes of
// constants are in the manifest of weights.
func modelJSON(data []byte) (*file, error) {
	var m struct {
		Topology json.RawMessage `json:"modelTopology"`
		Manifest []struct {
			Weights []struct {
				Name  string  `json:"name"`
				Shape []int64 `json:"shape"`
			} `json:"weights"`
		} `json:"weightsManifest"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s", foreign.Brief(err.Error()))
	}
	f := &file{def: &graphpb.GraphDef{}, weights: map[string][]int64{}}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(m.Topology, f.def); err != nil {
		return nil, plain(err)
	}
	if len(f.def.Node) == 0 {
		return nil, fmt.Errorf("modelTopology has no nodes: is it a Keras model in JSON?")
	}
	for _, group := range m.Manifest {
		for _, w := range group.Weights {
			f.weights[w.Name] = w.Shape
		}
	}
	return f, nil
}
