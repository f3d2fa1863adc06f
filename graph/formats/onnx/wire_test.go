package onnx

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// The tests write models with these: each returns an encoded field or message.

func bytesField(num protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
}

func textField(num protowire.Number, s string) []byte { return bytesField(num, []byte(s)) }

func numberField(num protowire.Number, x int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), uint64(x))
}

func concatBytes(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// modelOf wraps the fields of a graph.
func modelOf(graph ...[]byte) []byte {
	opset := bytesField(8, numberField(2, 17))
	return concatBytes(numberField(1, 8), textField(2, "test"), opset, bytesField(7, concatBytes(graph...)))
}

// nodeOf is a node; attrs come from the functions below.
func nodeOf(name, op string, in, out []string, attrs ...[]byte) []byte {
	var b []byte
	for _, s := range in {
		b = append(b, textField(1, s)...)
	}
	for _, s := range out {
		b = append(b, textField(2, s)...)
	}
	b = concatBytes(b, textField(3, name), textField(4, op))
	for _, a := range attrs {
		b = append(b, bytesField(5, a)...)
	}
	return bytesField(1, b)
}

// inDomain puts an encoded node into a domain.
func inDomain(domain string, b []byte) []byte {
	return bytesField(1, append(b[nodeHeader(b):], textField(7, domain)...))
}

func intAttr(name string, x int64) []byte { return concatBytes(textField(1, name), numberField(3, x)) }

func intsAttr(name string, list ...int64) []byte {
	b := textField(1, name)
	for _, x := range list {
		b = append(b, numberField(8, x)...)
	}
	return b
}

func stringAttr(name, s string) []byte { return concatBytes(textField(1, name), textField(4, s)) }

func graphAttr(name string, graph ...[]byte) []byte {
	return concatBytes(textField(1, name), bytesField(6, concatBytes(graph...)))
}

func tensorAttr(name string, t []byte) []byte {
	return concatBytes(textField(1, name), bytesField(5, t))
}

// tensorOf is a TensorProto without data.
func tensorOf(name string, e elem, dims ...int64) []byte {
	b := concatBytes(numberField(2, int64(e)), textField(8, name))
	for _, d := range dims {
		b = append(b, numberField(1, d)...)
	}
	return b
}

// intsTensor is an integer vector with its data, packed.
func intsTensor(name string, list ...int64) []byte {
	var data []byte
	for _, x := range list {
		data = protowire.AppendVarint(data, uint64(x))
	}
	return append(tensorOf(name, elemInt64, int64(len(list))), bytesField(7, data)...)
}

func initOf(t []byte) []byte { return bytesField(5, t) }

// valueOf is a ValueInfoProto; dimensions are numbers or names, and without any
// no shape is recorded.
func valueOf(name string, e elem, dims ...any) []byte {
	var shape []byte
	for _, d := range dims {
		switch d := d.(type) {
		case int:
			shape = append(shape, bytesField(1, numberField(1, int64(d)))...)
		case string:
			shape = append(shape, bytesField(1, textField(2, d))...)
		}
	}
	tensor := numberField(1, int64(e))
	if len(dims) > 0 {
		tensor = append(tensor, bytesField(2, shape)...)
	}
	return concatBytes(textField(1, name), bytesField(2, bytesField(1, tensor)))
}

func inputOf(name string, dims ...any) []byte {
	return bytesField(11, valueOf(name, elemFloat, dims...))
}
func outputOf(name string, dims ...any) []byte {
	return bytesField(12, valueOf(name, elemFloat, dims...))
}

func list(names ...string) []string { return names }

// nodeHeader returns where the content of an encoded node begins.
func nodeHeader(b []byte) int {
	_, _, k := protowire.ConsumeTag(b)
	_, n := protowire.ConsumeVarint(b[k:])
	return k + n
}
