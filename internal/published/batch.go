package published

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the messages of onnx.proto that OpenBatch goes through.
const (
	modelGraph       = 7
	graphNode        = 1
	graphInitializer = 5
	graphInput       = 11
	graphOutput      = 12
	nodeInput        = 1
	nodeType         = 4
	tensorName       = 8
	tensorRaw        = 9
	valueName        = 1
	valueType        = 2
	typeTensor       = 1
	tensorShape      = 2
	shapeDim         = 1
	dimParam         = 2
	int64Size        = 8
)

// OpenBatch returns an ONNX model whose first dimension is called batch instead of being a
// number: that of each input that is no initializer, and of each output; and what a Reshape
// makes of it is left as it is. Published models are of a batch of one.
func OpenBatch(model []byte) ([]byte, error) {
	shapes, initial := map[string]bool{}, map[string]bool{}
	open := func(graph []byte) ([]byte, error) {
		err := each(graph, func(num protowire.Number, sub []byte) error {
			switch num {
			case graphNode:
				in, kind, err := node(sub)
				if err == nil && kind == "Reshape" && len(in) > 1 {
					shapes[in[1]] = true
				}
				return err
			case graphInitializer:
				name, err := text(sub, tensorName)
				initial[name] = true
				return err
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return rewrite(graph, func(num protowire.Number, sub []byte) ([]byte, error) {
			switch num {
			case graphInitializer:
				if name, err := text(sub, tensorName); err != nil || !shapes[name] {
					return sub, err
				}
				return rewrite(sub, func(num protowire.Number, raw []byte) ([]byte, error) {
					if num != tensorRaw || len(raw) < int64Size || !bytes.Equal(raw[:int64Size], []byte{1, 0, 0, 0, 0, 0, 0, 0}) {
						return raw, nil
					}
					return append(make([]byte, int64Size), raw[int64Size:]...), nil // 0: as the input has it
				})
			case graphInput, graphOutput:
				if name, err := text(sub, valueName); err != nil || initial[name] {
					return sub, err
				}
				return openFirst(sub)
			}
			return sub, nil
		})
	}
	return rewrite(model, func(num protowire.Number, sub []byte) ([]byte, error) {
		if num != modelGraph {
			return sub, nil
		}
		return open(sub)
	})
}

// openFirst names the first dimension of a ValueInfoProto.
func openFirst(value []byte) ([]byte, error) {
	return at(value, []protowire.Number{valueType, typeTensor, tensorShape}, func(shape []byte) ([]byte, error) {
		done := false
		return rewrite(shape, func(num protowire.Number, dim []byte) ([]byte, error) {
			if num != shapeDim || done {
				return dim, nil
			}
			done = true
			return protowire.AppendString(protowire.AppendTag(nil, dimParam, protowire.BytesType), "batch"), nil
		})
	})
}

// at rewrites the message that path leads to.
func at(message []byte, path []protowire.Number, f func([]byte) ([]byte, error)) ([]byte, error) {
	if len(path) == 0 {
		return f(message)
	}
	return rewrite(message, func(num protowire.Number, sub []byte) ([]byte, error) {
		if num != path[0] {
			return sub, nil
		}
		return at(sub, path[1:], f)
	})
}

// rewrite returns a message with what f makes of each of its length-delimited fields.
func rewrite(message []byte, f func(protowire.Number, []byte) ([]byte, error)) (out []byte, err error) {
	for rest := message; len(rest) > 0; {
		num, typ, n := protowire.ConsumeField(rest)
		if n < 0 {
			return nil, fmt.Errorf("byte %d of a message: %w", len(message)-len(rest), protowire.ParseError(n))
		}
		_, _, tag := protowire.ConsumeTag(rest)
		if typ != protowire.BytesType {
			out, rest = append(out, rest[:n]...), rest[n:]
			continue
		}
		sub, _ := protowire.ConsumeBytes(rest[tag:])
		if sub, err = f(num, sub); err != nil {
			return nil, err
		}
		out, rest = protowire.AppendBytes(protowire.AppendTag(out, num, typ), sub), rest[n:]
	}
	return out, nil
}

// each tells f of every length-delimited field of a message.
func each(message []byte, f func(protowire.Number, []byte) error) error {
	_, err := rewrite(message, func(num protowire.Number, sub []byte) ([]byte, error) { return sub, f(num, sub) })
	return err
}

// text returns a string field.
func text(message []byte, want protowire.Number) (s string, err error) {
	err = each(message, func(num protowire.Number, sub []byte) error {
		if num == want {
			s = string(sub)
		}
		return nil
	})
	return s, err
}

// node returns what a NodeProto reads and its operator.
func node(message []byte) (in []string, kind string, err error) {
	err = each(message, func(num protowire.Number, sub []byte) error {
		switch num {
		case nodeInput:
			in = append(in, string(sub))
		case nodeType:
			kind = string(sub)
		}
		return nil
	})
	return in, kind, err
}
