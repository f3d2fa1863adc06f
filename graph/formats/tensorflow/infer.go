package tensorflow

import (
	"fmt"

	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"
	tensorpb "github.com/wamuir/graft/tensorflow/core/framework/tensor_go_proto"
	shapepb "github.com/wamuir/graft/tensorflow/core/framework/tensor_shape_go_proto"
	typespb "github.com/wamuir/graft/tensorflow/core/framework/types_go_proto"

	"placer/graph"
	"placer/units"
)

// maxValue bounds the constants whose values are kept.
const maxValue = 64

// elements returns the product of dims, which dims that fit have.
func elements(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

// shape returns a shape of the file with unknown dimensions filled in; nil for one of
// unknown rank.
func (imp *importer) shape(p *shapepb.TensorShapeProto) ([]int64, error) {
	if p == nil || p.UnknownRank {
		return nil, nil
	}
	dims := make([]int64, 0, len(p.Dim))
	for i, d := range p.Dim {
		n := d.GetSize()
		if n < 0 {
			imp.open++
			if n = 1; i == 0 {
				n = imp.batch()
			}
		}
		dims = append(dims, n)
	}
	return dims, fits(dims)
}

// inputShape returns the shape of an input, whose dimensions without a size have a name each,
// "x[1]": the caller may say what they are.
func (imp *importer) inputShape(n *nodepb.NodeDef) ([]int64, error) {
	dims, err := imp.shape(n.Attr["shape"].GetShape())
	for i, d := range n.Attr["shape"].GetShape().GetDim() {
		if i >= len(dims) || d.GetSize() >= 0 {
			continue
		}
		name := fmt.Sprintf("%s[%d]", n.Name, i)
		size, given := imp.dims[name]
		if given {
			dims[i] = size
			imp.open--
		} else if i > 0 {
			imp.taken = append(imp.taken, name)
		}
		if given || i > 0 { // the first is the batch
			imp.sum.Dims = append(imp.sum.Dims, name)
		}
	}
	if err == nil {
		err = fits(dims)
	}
	return dims, err
}

// fits reports a shape that is too large.
func fits(dims []int64) error {
	if n, err := graph.Shape(dims).Elements(); err != nil {
		return err
	} else if n > int64(graph.MaxBytes)/16 {
		return fmt.Errorf("shape %v is too large", dims)
	}
	return nil
}

// infer returns the outputs of n and its op but for name and cost.
func (imp *importer) infer(n *nodepb.NodeDef, in []output) ([]output, graph.Op, error) {
	op := graph.Op{Kind: kindOf(n.Op), Forward: graph.None, Phase: phaseOf(n.Name, kindOf(n.Op)), Module: moduleOf(n.Name)}
	given := n.Attr["_output_shapes"].GetList().GetShape()
	list, err := types(n, in, len(given))
	if err != nil {
		return nil, op, err
	}
	outs := make([]output, len(list))
	for k := range outs {
		outs[k].dtype = list[k]
	}
	if err := imp.rules(n, in, outs); err != nil {
		return nil, op, err
	}
	for k := range outs {
		if k < len(given) && !outs[k].resource {
			s, err := imp.shape(given[k])
			if err != nil {
				return nil, op, err
			}
			if s != nil && (outs[k].shape == nil || len(outs[k].shape) != len(s)) {
				outs[k].shape = s
			}
		}
		if outs[k].shape != nil {
			if err := fits(outs[k].shape); err != nil {
				return nil, op, err
			}
		}
	}
	if len(outs) > 0 {
		op.DType = outs[0].dtype.dtype
	} else if len(in) > 0 {
		op.DType = in[0].dtype.dtype
	}
	switch op.Kind.Class() {
	case graph.ClassVariable, graph.ClassConst:
		if len(outs) > 0 && outs[0].shape != nil {
			e := elements(outs[0].shape)
			op.Resident = units.Bytes(outs[0].dtype.bytes(e))
			if op.Kind.Class() == graph.ClassVariable && outs[0].dtype.float && imp.trained(n) {
				op.Params = e
			}
		}
	}
	return outs, op, nil
}

// constant reads the value of a Const.
func constant(t *tensorpb.TensorProto, shape []int64) []int64 {
	if shape == nil {
		return nil
	}
	count := elements(shape)
	if count > maxValue {
		return nil
	}
	var v []int64
	for _, x := range t.GetIntVal() {
		v = append(v, int64(x))
	}
	v = append(v, t.GetInt64Val()...)
	if b := t.GetTensorContent(); len(v) == 0 && len(b) > 0 {
		size := elemOf(t.GetDtype()).bytes(1)
		if elemOf(t.GetDtype()).float || size != 4 && size != 8 || int64(len(b)) != size*count {
			return nil
		}
		for ; len(b) > 0; b = b[size:] {
			x := uint64(0)
			for i := range size {
				x |= uint64(b[i]) << (8 * i)
			}
			if size == 4 {
				x = uint64(int64(int32(x)))
			}
			v = append(v, int64(x))
		}
	}
	if len(v) == 0 && (t.GetDtype() == typespb.DataType_DT_INT32 || t.GetDtype() == typespb.DataType_DT_INT64) {
		v = append(v, 0) // TensorFlow's optimizer leaves out zeros
	}
	for int64(len(v)) < count && len(v) > 0 {
		v = append(v, v[len(v)-1])
	}
	if int64(len(v)) != count {
		return nil
	}
	return v
}
