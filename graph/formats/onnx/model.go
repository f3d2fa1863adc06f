package onnx

import "fmt"

// model is a ModelProto.
type model struct {
	producer  string
	opsets    map[string]int64
	graph     *protoGraph
	functions map[string]*function // by domain and name
}

// protoGraph is a GraphProto.
type protoGraph struct {
	nodes     []node
	inits     []initializer
	inputs    []valueInfo
	outputs   []valueInfo
	valueInfo []valueInfo
}

// function is a FunctionProto.
type function struct {
	domain, name    string
	inputs, outputs []string
	attrs           []attribute // defaults
	opsets          map[string]int64
	nodes           []node
}

// node is a NodeProto.
type node struct {
	name, op, domain string
	in, out          []string
	attrs            []attribute
	opsets           map[string]int64 // of the function whose body it stands in; nil: the scope's
	module           string           // path of its module, or names of the calls that it stands in, joined by dots
}

// attribute is an AttributeProto.
type attribute struct {
	name   string
	ref    string // of an attribute of the enclosing function
	i      int64
	f      float32
	s      string
	ints   []int64
	floats []float64
	tensor *initializer
	graph  *protoGraph
}

// initializer is a TensorProto without its data.
type initializer struct {
	name     string
	elem     int32
	dims     []int64
	data     []field   // the data fields, aliasing the file; nil where they are many
	external *external // nil: the data are in the file
	sparse   int64     // stored elements of a sparse tensor, -1 for a dense one
}

// valueInfo is a ValueInfoProto.
type valueInfo struct {
	name   string
	tensor bool // a tensor type with element type and perhaps a shape
	elem   int32
	shaped bool
	dims   []dim
}

// dim is one dimension; value is -1 where it is not given.
type dim struct {
	value int64
	param string
}

// attr returns the attribute called name, nil where n has none.
func (n *node) attr(name string) *attribute {
	for i := range n.attrs {
		if n.attrs[i].name == name {
			return &n.attrs[i]
		}
	}
	return nil
}

// int returns the integer attribute called name.
func (n *node) int(name string, otherwise int64) int64 {
	if a := n.attr(name); a != nil {
		return a.i
	}
	return otherwise
}

// ints returns the list attribute called name, nil where n has none.
func (n *node) ints(name string) []int64 {
	if a := n.attr(name); a != nil {
		return a.ints
	}
	return nil
}

// string returns the string attribute called name.
func (n *node) string(name, otherwise string) string {
	if a := n.attr(name); a != nil {
		return a.s
	}
	return otherwise
}

// key names the operator: "Conv", "com.microsoft.Attention". The default domain
// has two spellings.
func (n *node) key() string { return operatorKey(n.domain, n.op) }

func operatorKey(domain, op string) string {
	if domain == "" || domain == "ai.onnx" {
		return op
	}
	return domain + "." + op
}

// place names node i for errors: "node 17 (Conv_3)".
func (n *node) place(i int) string {
	label := n.name
	if label == "" {
		label = n.op
	}
	if label == "" {
		return fmt.Sprintf("node %d", i)
	}
	return fmt.Sprintf("node %d (%s)", i, brief(label))
}
