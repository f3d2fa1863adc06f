package onnx

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Bounds of what a file may hold, far above what models have.
const (
	maxNesting = 16 // of graphs in attributes
	maxRank    = 64
)

// parseModel reads a ModelProto. The result aliases data only in the data
// fields of tensors.
func parseModel(data []byte) (*model, error) {
	m := &model{opsets: map[string]int64{}, functions: map[string]*function{}}
	err := message{data, 0}.fields("the model", func(f field) error {
		switch f.num {
		case 2:
			m.producer = f.text()
		case 7:
			if m.graph != nil {
				return errors.New("the model has two graphs")
			}
			return f.graph(&m.graph, 0)
		case 8:
			return f.opset(m.opsets)
		case 25:
			fn, err := f.function()
			if err != nil {
				return err
			}
			m.functions[operatorKey(fn.domain, fn.name)] = fn
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("is no ONNX model, or a damaged one: %w", err)
	case m.graph == nil:
		return nil, errors.New("is no ONNX model: it has no graph")
	case len(m.graph.nodes) == 0:
		return nil, errors.New("the model's graph has no nodes")
	}
	return m, nil
}

func (f field) opset(sets map[string]int64) error {
	domain, version, err := f.pair("opset_import")
	if domain == "ai.onnx" {
		domain = ""
	}
	sets[domain] = int64(version.number)
	return err
}

// pair reads a message of a text in field 1 and something in field 2.
func (f field) pair(what string) (key string, second field, err error) {
	err = f.sub.fields(what, func(f field) error {
		switch f.num {
		case 1:
			key = f.text()
		case 2:
			second = f
		}
		return nil
	})
	return key, second, err
}

func (f field) graph(to **protoGraph, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("byte %d: graphs are nested deeper than %d", f.sub.at, maxNesting)
	}
	if err := f.wants(protowire.BytesType, "graph"); err != nil {
		return err
	}
	g := &protoGraph{}
	*to = g
	return f.sub.fields("the graph", func(f field) error {
		switch f.num {
		case 1:
			return f.node(&g.nodes, depth)
		case 5:
			return appendTo(&g.inits, f.tensor)
		case 15:
			return appendTo(&g.inits, f.sparse)
		case 11:
			return appendTo(&g.inputs, f.valueInfo)
		case 12:
			return appendTo(&g.outputs, f.valueInfo)
		case 13:
			return appendTo(&g.valueInfo, f.valueInfo)
		}
		return nil
	})
}

// appendTo appends what read returns to the list.
func appendTo[T any](list *[]T, read func() (T, error)) error {
	x, err := read()
	*list = append(*list, x)
	return err
}

func (f field) function() (*function, error) {
	fn := &function{opsets: map[string]int64{}}
	err := f.sub.fields("a function", func(f field) error {
		switch f.num {
		case 1:
			fn.name = f.text()
		case 4:
			fn.inputs = append(fn.inputs, f.text())
		case 5:
			fn.outputs = append(fn.outputs, f.text())
		case 7:
			return f.node(&fn.nodes, 0)
		case 9:
			return f.opset(fn.opsets)
		case 10:
			fn.domain = f.text()
		case 11:
			return appendTo(&fn.attrs, func() (attribute, error) { return f.attribute(0) })
		}
		return nil
	})
	return fn, err
}

func (f field) node(to *[]node, depth int) error {
	*to = append(*to, node{})
	n := &(*to)[len(*to)-1]
	err := f.sub.fields("a node", func(f field) error {
		switch f.num {
		case 1:
			n.in = append(n.in, f.text())
		case 2:
			n.out = append(n.out, f.text())
		case 3:
			n.name = f.text()
		case 4:
			n.op = f.text()
		case 5:
			return appendTo(&n.attrs, func() (attribute, error) { return f.attribute(depth) })
		case 7:
			n.domain = f.text()
		case 9:
			return f.metadata(n)
		}
		return nil
	})
	if err == nil && n.op == "" {
		err = fmt.Errorf("byte %d: a node has no op_type", f.sub.at)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", n.place(len(*to)-1), err)
	}
	return nil
}

func (f field) attribute(depth int) (a attribute, err error) {
	err = f.sub.fields("an attribute", func(f field) (err error) {
		switch f.num {
		case 1:
			a.name = f.text()
		case 2:
			a.f = math.Float32frombits(uint32(f.number))
		case 3:
			a.i = int64(f.number)
		case 4:
			a.s = f.text()
		case 5:
			var t initializer
			t, err = f.tensor()
			a.tensor = &t
		case 6:
			err = f.graph(&a.graph, depth+1)
		case 7:
			err = f.float32s(&a.floats)
		case 8:
			a.ints, err = f.ints(a.ints)
		case 21:
			a.ref = f.text()
		case 22: // sparse_tensor
			var t initializer
			t, err = f.sparse()
			a.tensor = &t
		}
		return err
	})
	return a, err
}

func (f field) tensor() (t initializer, err error) {
	many := false
	t.sparse = -1
	err = f.sub.fields("a tensor", func(f field) (err error) {
		switch f.num {
		case 1:
			t.dims, err = f.dims(t.dims, "a tensor")
		case 2:
			t.elem = int32(f.number)
		case 8:
			t.name = f.text()
		case 4, 5, 7, 9, 10, 11:
			if t.data = append(t.data, f); len(t.data) > maxValue {
				t.data, many = nil, true // unpacked and too long to be a shape
			}
		case 13:
			var key string
			var value field
			key, value, err = f.pair("external data")
			if t.external == nil {
				t.external = &external{length: -1}
			}
			t.external.set(key, value.text())
		}
		return err
	})
	if many {
		t.data = nil
	}
	if err == nil && !sized(t.dims) {
		err = fmt.Errorf("tensor %q has dimensions %v", brief(t.name), t.dims)
	}
	return t, err
}

// dims appends the dimensions of what, of which there are at most maxRank.
func (f field) dims(to []int64, what string) ([]int64, error) {
	to, err := f.ints(to)
	if err == nil && len(to) > maxRank {
		err = fmt.Errorf("byte %d: %s has more than %d dimensions", f.sub.at, what, maxRank)
	}
	return to, err
}

// sized reports whether all dimensions are in range.
func sized(dims []int64) bool {
	return !slices.ContainsFunc(dims, func(d int64) bool { return d < 0 || d > maxDim })
}

// sparse reads a SparseTensorProto as a tensor of its full dimensions.
func (f field) sparse() (t initializer, err error) {
	var dims []int64
	err = f.sub.fields("a sparse tensor", func(f field) (err error) {
		switch f.num {
		case 1:
			t, err = f.tensor()
		case 3:
			dims, err = f.dims(dims, "a sparse tensor")
		}
		return err
	})
	t.sparse = 1
	for _, d := range t.dims {
		if t.sparse *= d; t.sparse > maxDim {
			return t, fmt.Errorf("sparse tensor %q has values of dimensions %v", brief(t.name), t.dims)
		}
	}
	if err == nil && !sized(dims) {
		err = fmt.Errorf("sparse tensor %q has dimensions %v", brief(t.name), dims)
	}
	t.dims, t.data = dims, nil
	return t, err
}

func (f field) valueInfo() (v valueInfo, err error) {
	err = f.sub.fields("a value", func(f field) error {
		switch f.num {
		case 1:
			v.name = f.text()
		case 2:
			return f.sub.fields("a type", func(f field) error {
				if f.num != 1 { // sequence, map, optional, sparse
					return nil
				}
				v.tensor = true
				return f.sub.fields("a tensor type", func(f field) error {
					switch f.num {
					case 1:
						v.elem = int32(f.number)
					case 2:
						v.shaped = true
						return f.shape(&v.dims)
					}
					return nil
				})
			})
		}
		return nil
	})
	return v, err
}

func (f field) shape(dims *[]dim) error {
	return f.sub.fields("a shape", func(f field) error {
		if f.num != 1 {
			return nil
		}
		d := dim{value: -1}
		err := f.sub.fields("a dimension", func(f field) error {
			switch f.num {
			case 1:
				d.value = int64(f.number)
			case 2:
				d.param = f.text()
			}
			return nil
		})
		if err == nil && len(*dims) == maxRank {
			err = fmt.Errorf("byte %d: a shape has more than %d dimensions", f.sub.at, maxRank)
		}
		if err == nil && d.value > maxDim {
			err = fmt.Errorf("byte %d: dimension %d", f.sub.at, d.value)
		}
		*dims = append(*dims, d)
		return err
	})
}

// float32s appends a repeated float field, packed or not.
func (f field) float32s(list *[]float64) error {
	if f.typ == protowire.Fixed32Type {
		*list = append(*list, float64(math.Float32frombits(uint32(f.number))))
		return nil
	}
	if len(f.sub.data)%4 != 0 {
		return fmt.Errorf("byte %d: a list of floats is cut short", f.sub.at)
	}
	for b := f.sub.data; len(b) > 0; b = b[4:] {
		x, _ := protowire.ConsumeFixed32(b)
		*list = append(*list, float64(math.Float32frombits(x)))
	}
	return nil
}
