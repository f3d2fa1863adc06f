package onnx

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// external says where the data of a tensor are that are not in the file.
type external struct {
	location       string
	offset, length int64 // length -1: to be computed
	read           func(location string, offset, length int64) ([]byte, error)
}

// set sets what an entry of TensorProto.external_data says.
func (x *external) set(key, value string) {
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case key == "location":
		x.location = value
	case err != nil || n < 0:
	case key == "offset":
		x.offset = n
	case key == "length":
		x.length = n
	}
}

// elements returns the bytes of n elements of type e as a raw data field, ok false where they
// cannot be had.
func (x *external) elements(e elem, n int64) (f field, ok bool) {
	size := int64(e.bytes(n))
	if x.read == nil || x.length >= 0 && x.length != size {
		return field{}, false
	}
	data, err := x.read(x.location, x.offset, size)
	return field{num: rawData, typ: protowire.BytesType, sub: message{data: data}}, err == nil && int64(len(data)) == size
}

// externals has the small tensors of a model that lie in other files read from there, by
// read, when their values are wanted. It returns what tells the first fault of that.
func externals(m *model, read func(location string, offset, length int64) ([]byte, error)) (fault func() error) {
	if read == nil {
		return func() error { return nil }
	}
	var first error
	noted := func(location string, offset, length int64) ([]byte, error) {
		data, err := read(location, offset, length)
		if err != nil && first == nil {
			first = fmt.Errorf("%s, where values of it are, cannot be read: %w", brief(location), err)
		}
		return data, err
	}
	var nodes func(list []node)
	tensor := func(x *initializer) {
		if x.external != nil {
			x.external.read = noted
		}
	}
	nodes = func(list []node) {
		for i := range list {
			for k := range list[i].attrs {
				a := &list[i].attrs[k]
				if a.tensor != nil {
					tensor(a.tensor)
				}
				if a.graph != nil {
					for j := range a.graph.inits {
						tensor(&a.graph.inits[j])
					}
					nodes(a.graph.nodes)
				}
			}
		}
	}
	for i := range m.graph.inits {
		tensor(&m.graph.inits[i])
	}
	nodes(m.graph.nodes)
	for _, f := range m.functions {
		nodes(f.nodes)
	}
	return func() error { return first }
}
