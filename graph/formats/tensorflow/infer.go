package tensorflow

import (
	"fmt"
	"math"
	"slices"
	"strings"

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

// fits reports a shape that is too large.
func fits(dims []int64) error {
	if n, err := graph.Shape(dims).Elements(); err != nil {
		return err
	} else if n > int64(graph.MaxBytes)/16 {
		return fmt.Errorf("shape %v is too large", dims)
	}
	return nil
}

// types returns the types of the outputs of n, which are as many as the outputs that the
// operator is known to have.
func types(n *nodepb.NodeDef, in []output, shapes int) ([]elem, error) {
	of := func(key string) elem { return elemOf(n.Attr[key].GetType()) }
	first := of("T")
	if _, ok := n.Attr["T"]; !ok {
		if first = of("dtype"); n.Attr["dtype"] == nil && len(in) > 0 {
			first = in[0].dtype
		}
	}
	count := 1
	switch n.Op {
	case "NoOp", "ControlTrigger", "Assert", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "SaveV2", "MergeV2Checkpoints", "_Retval", "_DeviceRetval", "QueueCloseV2", "QueueEnqueueV2", "QueueEnqueueManyV2", "EnqueueV2":
		return nil, nil
	case "Split", "SplitV":
		count = int(min(max(n.Attr["num_split"].GetI(), 0), maxOutputs))
	case "Unpack":
		count = int(min(max(n.Attr["num"].GetI(), 0), maxOutputs))
	case "ShapeN", "ConcatOffset":
		list := slices.Repeat([]elem{elemOf(typespb.DataType_DT_INT32)}, int(min(max(n.Attr["N"].GetI(), 0), maxOutputs)))
		return list, nil
	case "Shape", "Size", "Rank", "InvertPermutation":
		if t, ok := n.Attr["out_type"]; ok {
			return []elem{elemOf(t.GetType())}, nil
		}
		return []elem{elemOf(typespb.DataType_DT_INT32)}, nil
	case "BroadcastGradientArgs":
		return []elem{first, first}, nil
	case "Switch", "RefSwitch":
		return []elem{first, first}, nil
	case "Merge", "RefMerge":
		return []elem{first, elemOf(typespb.DataType_DT_INT32)}, nil
	case "Cast":
		return []elem{of("DstT")}, nil
	case "ReadVariableOp", "VarHandleOp", "Variable", "VariableV2", "Placeholder", "PlaceholderV2", "Const", "ResourceGather", "RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt":
		if n.Attr["dtype"] != nil {
			return []elem{of("dtype")}, nil
		}
	case "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr", "LogicalNot", "All", "Any", "IsFinite", "IsNan", "LoopCond":
		return []elem{elemOf(typespb.DataType_DT_BOOL)}, nil
	case "ArgMax", "ArgMin":
		if n.Attr["output_type"] != nil {
			return []elem{of("output_type")}, nil
		}
		return []elem{elemOf(typespb.DataType_DT_INT64)}, nil
	case "Gather", "GatherV2", "GatherNd":
		return []elem{of("Tparams")}, nil
	case "OneHot", "Range":
		if n.Op == "Range" {
			return []elem{of("Tidx")}, nil
		}
	case "TopKV2", "TopK":
		return []elem{first, elemOf(typespb.DataType_DT_INT32)}, nil
	case "SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits":
		count = 2
	case "FusedBatchNorm":
		count = 5
	case "FusedBatchNormV2", "FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3":
		count = 5
	case "FusedBatchNormV3":
		count = 6
	case "IdentityN":
		var list []elem
		for _, x := range in {
			list = append(list, x.dtype)
		}
		return list, nil
	}
	for _, key := range []string{"Tout", "output_types", "dtypes", "component_types", "out_types"} {
		if list := n.Attr[key].GetList().GetType(); len(list) > 0 && len(list) <= maxOutputs {
			var all []elem
			for _, t := range list {
				all = append(all, elemOf(t))
			}
			return all, nil
		}
	}
	if shapes > count {
		count = min(shapes, maxOutputs)
	}
	if strings.HasPrefix(n.Op, "ResourceApply") || strings.HasPrefix(n.Op, "ResourceSparseApply") || strings.HasPrefix(n.Op, "ResourceScatter") {
		return nil, nil
	}
	return slices.Repeat([]elem{first}, count), nil
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
			op.Resident = units.Bytes(e * outs[0].dtype.size)
			if op.Kind.Class() == graph.ClassVariable && outs[0].dtype.float && !isSlot(n.Name) {
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
		size := elemOf(t.GetDtype()).size
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
	for len(v) > 0 && int64(len(v)) < count {
		v = append(v, v[len(v)-1])
	}
	if int64(len(v)) != count {
		return nil
	}
	return v
}

// rules sets the shapes, and the values of small integers, of the outputs of n.
func (imp *importer) rules(n *nodepb.NodeDef, in []output, outs []output) error {
	if len(outs) == 0 {
		return nil
	}
	out := &outs[0]
	shapeOf := func(k int) []int64 {
		if k < len(in) {
			return in[k].shape
		}
		return nil
	}
	valueOf := func(k int) []int64 {
		if k < len(in) {
			return in[k].value
		}
		return nil
	}
	set := func(s []int64) { out.shape = s }
	scalar := []int64{}
	x := shapeOf(0)
	switch n.Op {
	case "Const":
		s, err := imp.shape(n.Attr["value"].GetTensor().GetTensorShape())
		if err != nil {
			return err
		}
		if w, ok := imp.file.weights[n.Name]; ok {
			s = w
		}
		if n.Attr["value"].GetTensor() != nil && s == nil {
			s = scalar
		}
		if s != nil && fits(s) != nil {
			return fits(s)
		}
		out.shape, out.value = s, constant(n.Attr["value"].GetTensor(), s)
	case "Placeholder", "PlaceholderV2", "Variable", "VariableV2", "VarHandleOp", "_Arg":
		s, err := imp.shape(n.Attr["shape"].GetShape())
		if err != nil {
			return err
		}
		out.shape = s
		out.resource = n.Op == "VarHandleOp" || n.Attr["dtype"].GetType() == typespb.DataType_DT_RESOURCE
	case "ReadVariableOp", "Identity", "Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "LoopCond", "StopGradient", "PreventGradient", "Snapshot", "PlaceholderWithDefault",
		"Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Sigmoid", "Tanh", "Exp", "Log", "Log1p", "Sqrt", "Rsqrt", "Square", "Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Reciprocal", "Softplus", "Erf", "Sin", "Cos", "LogicalNot", "Cast",
		"Softmax", "LogSoftmax", "BiasAdd", "ZerosLike", "OnesLike", "AddN", "ReluGrad", "Relu6Grad", "SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "SoftplusGrad", "EluGrad", "LRN", "IsFinite", "IsNan",
		"MaxPoolGrad", "ReverseV2", "Cumsum", "IdentityN", "Pow1", "CheckNumerics", "EnsureShape", "InvertPermutation", "ClipByValue":
		for k := range outs {
			if k < len(in) {
				outs[k].shape = in[k].shape
			}
		}
		if n.Op == "Identity" || n.Op == "Cast" {
			out.value = valueOf(0)
		}
		out.resource = len(in) > 0 && in[0].resource && n.Op != "ReadVariableOp"
		if len(in) > 0 && n.Op == "ReadVariableOp" && n.Attr["dtype"] == nil {
			out.dtype = in[0].dtype
		}
	case "Switch", "RefSwitch":
		for k := range outs {
			outs[k].shape, outs[k].resource = x, len(in) > 0 && in[0].resource
		}
	case "Merge", "RefMerge":
		set(x)
		if len(outs) > 1 {
			outs[1].shape = scalar
		}
	case "Assign", "AssignAdd", "AssignSub":
		if set(shapeOf(1)); out.shape == nil {
			set(x)
		}
	case "Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "FloorDiv", "FloorMod", "Mod", "Maximum", "Minimum", "Pow", "SquaredDifference", "DivNoNan", "MulNoNan", "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr", "BitwiseAnd", "TruncateDiv", "Xdivy":
		set(broadcast(x, shapeOf(1)))
		out.value = arithmetic(n.Op, valueOf(0), valueOf(1))
	case "Select", "SelectV2":
		set(broadcast(broadcast(x, shapeOf(1)), shapeOf(2)))
	case "L2Loss", "Size", "Rank":
		set(scalar)
		if n.Op == "Size" && x != nil && fits(x) == nil {
			out.value = []int64{elements(x)}
		} else if n.Op == "Rank" && x != nil {
			out.value = []int64{int64(len(x))}
		}
	case "Shape", "ShapeN":
		for k := range outs {
			if s := shapeOf(k); s != nil {
				outs[k].shape = []int64{int64(len(s))}
				if len(s) <= maxValue {
					outs[k].value = s
				}
			}
		}
	case "MatMul", "_FusedMatMul":
		y := shapeOf(1)
		if len(x) == 2 && len(y) == 2 {
			set([]int64{x[flag(n, "transpose_a")], y[1-flag(n, "transpose_b")]})
		}
	case "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3":
		y := shapeOf(1)
		if len(x) >= 2 && len(y) >= 2 {
			outer := broadcast(x[:len(x)-2], y[:len(y)-2])
			if outer != nil {
				set(append(slices.Clone(outer), x[len(x)-2+flag(n, "adj_x")], y[len(y)-1-flag(n, "adj_y")]))
			}
		}
	case "Conv2D", "_FusedConv2D", "DepthwiseConv2dNative", "FusedDepthwiseConv2dNative", "MaxPool", "AvgPool":
		set(window(n, x, shapeOf(1)))
	case "Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput", "AvgPoolGrad":
		set(valueOf(0))
	case "Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter":
		set(valueOf(1))
	case "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3":
		set(x)
		for k := 1; k < len(outs); k++ {
			outs[k].shape = shapeOf(1)
		}
	case "FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3":
		set(x)
		for k := 1; k < len(outs); k++ {
			outs[k].shape = shapeOf(2)
		}
	case "Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "ArgMax", "ArgMin":
		keep := flag(n, "keep_dims") == 1 || flag(n, "keepdims") == 1
		set(reduced(x, valueOf(1), keep))
	case "BiasAddGrad":
		if len(x) > 0 {
			set(x[len(x)-1:])
			if string(n.Attr["data_format"].GetS()) == "NCHW" && len(x) > 1 {
				set(x[1:2])
			}
		}
	case "Reshape":
		set(reshaped(x, valueOf(1)))
		out.value = valueOf(0)
	case "ExpandDims":
		if v := valueOf(1); len(v) == 1 && x != nil {
			k := v[0]
			if k < 0 {
				k += int64(len(x)) + 1
			}
			if k >= 0 && k <= int64(len(x)) {
				set(slices.Insert(slices.Clone(x), int(k), 1))
				out.value = valueOf(0)
			}
		}
	case "Squeeze":
		dims := n.Attr["squeeze_dims"].GetList().GetI()
		if x != nil {
			kept := []int64{}
			for i, d := range x {
				if d != 1 || len(dims) > 0 && !slices.Contains(dims, int64(i)) && !slices.Contains(dims, int64(i-len(x))) {
					kept = append(kept, d)
				}
			}
			set(kept)
		}
	case "Transpose":
		p := valueOf(1)
		if x != nil && len(p) == len(x) {
			s := make([]int64, len(x))
			for i, from := range p {
				if from < 0 || from >= int64(len(x)) {
					return fmt.Errorf("permutation %v", p)
				}
				s[i] = x[from]
			}
			set(s)
		}
	case "ConcatV2":
		imp.concat(in[:max(len(in)-1, 0)], valueOf(len(in)-1), out)
	case "Concat":
		if len(in) > 0 {
			imp.concat(in[1:], valueOf(0), out)
		}
	case "Split":
		if v, s := valueOf(0), shapeOf(1); len(v) == 1 && s != nil && len(outs) > 0 {
			k := v[0]
			if k < 0 {
				k += int64(len(s))
			}
			if k >= 0 && k < int64(len(s)) {
				part := slices.Clone(s)
				part[k] /= int64(len(outs))
				for i := range outs {
					outs[i].shape = part
				}
			}
		}
	case "Pack":
		if x != nil {
			k := n.Attr["axis"].GetI()
			if k < 0 {
				k += int64(len(x)) + 1
			}
			if k >= 0 && k <= int64(len(x)) {
				set(slices.Insert(slices.Clone(x), int(k), int64(len(in))))
			}
			if len(x) == 0 && len(in) <= maxValue {
				v := []int64{}
				for k := range in {
					if len(in[k].value) == 1 {
						v = append(v, in[k].value[0])
					}
				}
				if len(v) == len(in) {
					out.value = v
				}
			}
		}
	case "Unpack":
		k := n.Attr["axis"].GetI()
		if k < 0 {
			k += int64(len(x))
		}
		if k >= 0 && k < int64(len(x)) {
			s := slices.Delete(slices.Clone(x), int(k), int(k)+1)
			for i := range outs {
				outs[i].shape = s
				if v := valueOf(0); len(x) == 1 && i < len(v) {
					outs[i].value = v[i : i+1]
				}
			}
		}
	case "Fill", "RandomUniform", "RandomStandardNormal", "TruncatedNormal", "BroadcastTo", "RandomUniformInt":
		v := valueOf(0)
		if n.Op == "BroadcastTo" {
			v = valueOf(1)
		}
		if v != nil && !slices.ContainsFunc(v, func(d int64) bool { return d < 0 }) {
			set(v)
		}
	case "Slice":
		if sizes := valueOf(2); sizes != nil && len(sizes) == len(x) {
			s := slices.Clone(sizes)
			for i := range s {
				if s[i] < 0 {
					if s[i] = x[i]; valueOf(1) != nil && len(valueOf(1)) == len(x) {
						s[i] = max(x[i]-max(valueOf(1)[i], 0), 0)
					}
				}
			}
			set(s)
		}
	case "StridedSlice":
		strided(n, in, out)
	case "Pad", "PadV2", "MirrorPad":
		if p := valueOf(1); x != nil && len(p) == 2*len(x) {
			s := slices.Clone(x)
			for i := range s {
				s[i] += min(max(p[2*i], 0), 1<<40) + min(max(p[2*i+1], 0), 1<<40)
			}
			set(s)
		}
	case "Tile":
		if m := valueOf(1); x != nil && len(m) == len(x) {
			s := slices.Clone(x)
			for i := range s {
				if m[i] < 0 || m[i] > 1<<40 || s[i] > 1<<20 {
					return nil
				}
				s[i] *= m[i]
			}
			set(s)
		}
	case "Gather", "GatherV2", "ResourceGather":
		axis := int64(0)
		if v := valueOf(2); len(v) == 1 {
			axis = v[0]
		}
		if ids := shapeOf(1); x != nil && ids != nil && axis >= 0 && axis < int64(len(x)) {
			set(slices.Concat(x[:axis], ids, x[axis+1:]))
		}
	case "OneHot":
		if v := valueOf(1); x != nil && len(v) == 1 && v[0] >= 0 {
			set(append(slices.Clone(x), v[0]))
		}
	case "TopKV2":
		if v := valueOf(1); len(x) > 0 && len(v) == 1 && v[0] >= 0 {
			s := append(slices.Clone(x[:len(x)-1]), v[0])
			for i := range outs {
				outs[i].shape = s
			}
		}
	case "SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits":
		if len(x) == 2 && len(outs) == 2 {
			outs[0].shape, outs[1].shape = x[:1], x
		}
	case "Range":
		if a, b, c := valueOf(0), valueOf(1), valueOf(2); len(a) == 1 && len(b) == 1 && len(c) == 1 && c[0] != 0 {
			set([]int64{max((b[0]-a[0]+c[0]-1)/c[0], 0)})
			if n := out.shape[0]; n <= maxValue {
				out.value = []int64{}
				for i := range n {
					out.value = append(out.value, a[0]+i*c[0])
				}
			}
		}
	case "ResizeNearestNeighbor", "ResizeBilinear":
		if v := valueOf(1); len(x) == 4 && len(v) == 2 && v[0] >= 0 && v[1] >= 0 {
			set([]int64{x[0], v[0], v[1], x[3]})
		}
	default:
		if strings.HasPrefix(n.Op, "Apply") {
			set(x)
		}
	}
	return nil
}

func flag(n *nodepb.NodeDef, name string) int {
	if n.Attr[name].GetB() {
		return 1
	}
	return 0
}

// broadcast returns the shape of an elementwise operation of two.
func broadcast(a, b []int64) []int64 {
	if a == nil || b == nil {
		return nil
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	s := slices.Clone(a)
	if s == nil {
		s = []int64{}
	}
	for i := range b {
		k := len(a) - len(b) + i
		if s[k] == 1 {
			s[k] = b[i]
		}
	}
	return s
}

// arithmetic computes on small known integers.
func arithmetic(op string, a, b []int64) []int64 {
	if len(a) == 0 || len(b) == 0 || len(a) != len(b) && len(a) != 1 && len(b) != 1 {
		return nil
	}
	out := make([]int64, max(len(a), len(b)))
	for i := range out {
		x, y := a[i%len(a)], b[i%len(b)]
		if x > math.MaxInt32 || y > math.MaxInt32 || x < -math.MaxInt32 || y < -math.MaxInt32 {
			return nil
		}
		switch {
		case op == "Add" || op == "AddV2":
			out[i] = x + y
		case op == "Sub":
			out[i] = x - y
		case op == "Mul":
			out[i] = x * y
		case op == "Maximum":
			out[i] = max(x, y)
		case op == "Minimum":
			out[i] = min(x, y)
		case (op == "FloorDiv" || op == "TruncateDiv") && y > 0 && x >= 0:
			out[i] = x / y
		case (op == "FloorMod" || op == "Mod") && y > 0 && x >= 0:
			out[i] = x % y
		default:
			return nil
		}
	}
	return out
}

// reduced returns x without the axes, all of them where they are not known.
func reduced(x, axes []int64, keep bool) []int64 {
	if x == nil || axes == nil {
		return nil
	}
	s := []int64{}
	for i, d := range x {
		if !slices.Contains(axes, int64(i)) && !slices.Contains(axes, int64(i-len(x))) {
			s = append(s, d)
		} else if keep {
			s = append(s, 1)
		}
	}
	return s
}

// reshaped returns the shape that v gives x's elements, of which one may be open.
func reshaped(x, v []int64) []int64 {
	if v == nil {
		return nil
	}
	s, open, rest := slices.Clone(v), -1, int64(1)
	for i, d := range s {
		if d < 0 {
			if open >= 0 {
				return nil
			}
			open = i
			continue
		}
		if d > 0 && rest > math.MaxInt64/16/d {
			return nil
		}
		rest *= d
	}
	if open >= 0 {
		if x == nil || rest == 0 || fits(x) != nil {
			return nil
		}
		s[open] = elements(x) / rest
	}
	return s
}

// concat sets the shape of tensors one after another, and their values.
func (imp *importer) concat(in []output, axis []int64, out *output) {
	if len(axis) != 1 || len(in) == 0 || in[0].shape == nil {
		return
	}
	s, k := slices.Clone(in[0].shape), axis[0]
	if k < 0 {
		k += int64(len(s))
	}
	if k < 0 || k >= int64(len(s)) {
		return
	}
	v := slices.Clone(in[0].value)
	for _, x := range in[1:] {
		if len(x.shape) != len(s) || s[k] > 1<<50 {
			return
		}
		s[k] += x.shape[k]
		if v = append(v, x.value...); x.value == nil {
			v = nil
		}
	}
	out.shape = s
	if in[0].value != nil && int64(len(v)) == s[0] && len(s) == 1 && len(v) <= maxValue {
		out.value = v
	}
}

// window returns the shape of a convolution's or a pooling's output. kernel is
// [height,width,in,out] of a convolution, nothing for a pooling.
func window(n *nodepb.NodeDef, x, kernel []int64) []int64 {
	if len(x) != 4 {
		return nil
	}
	h, c := 1, 3
	if string(n.Attr["data_format"].GetS()) == "NCHW" {
		h, c = 2, 1
	}
	stride, size, dilation := n.Attr["strides"].GetList().GetI(), n.Attr["ksize"].GetList().GetI(), n.Attr["dilations"].GetList().GetI()
	if len(stride) != 4 {
		return nil
	}
	s := slices.Clone(x)
	for i := range 2 {
		var k int64
		switch {
		case strings.HasSuffix(n.Op, "Pool"):
			if len(size) != 4 {
				return nil
			}
			k = size[h+i]
		case len(kernel) == 4:
			k = kernel[i]
		default:
			return nil
		}
		if len(dilation) == 4 && dilation[h+i] > 1 && dilation[h+i] < 1<<20 && k < 1<<20 {
			k = (k-1)*dilation[h+i] + 1
		}
		if stride[h+i] < 1 {
			return nil
		}
		d := x[h+i]
		switch string(n.Attr["padding"].GetS()) {
		case "VALID":
			d -= k - 1
		case "EXPLICIT":
			pads := n.Attr["explicit_paddings"].GetList().GetI()
			if len(pads) != 8 {
				return nil
			}
			d += pads[2*(h+i)] + pads[2*(h+i)+1] - (k - 1)
		}
		s[h+i] = max((d+stride[h+i]-1)/stride[h+i], 0)
	}
	if len(kernel) == 4 {
		s[c] = kernel[3]
		if strings.Contains(n.Op, "Depthwise") {
			if kernel[2] > 1<<24 || kernel[3] > 1<<24 {
				return nil
			}
			s[c] = kernel[2] * kernel[3]
		}
	}
	return s
}

// strided sets the shape of a slice with strides, and its value where that is known.
func strided(n *nodepb.NodeDef, in []output, out *output) {
	if len(in) < 4 || in[0].shape == nil || in[1].value == nil || len(in[1].value) != len(in[2].value) || len(in[1].value) != len(in[3].value) || in[2].value == nil || in[3].value == nil {
		return
	}
	mask := func(name string, i int) bool { return n.Attr[name].GetI()>>i&1 == 1 }
	if n.Attr["ellipsis_mask"].GetI() != 0 {
		return
	}
	s, k := []int64{}, 0
	var first, count, step int64 = 0, 0, 1
	for i := range in[1].value {
		if mask("new_axis_mask", i) {
			s = append(s, 1)
			continue
		}
		if k >= len(in[0].shape) {
			return
		}
		d := in[0].shape[k]
		k++
		by := in[3].value[i]
		if by == 0 || by < -1<<30 || by > 1<<30 {
			return
		}
		clip := func(v int64, open bool, ends [2]int64) int64 {
			if open {
				return ends[0]
			}
			if v < 0 {
				v += d
			}
			return min(max(v, ends[1]), d)
		}
		var from, to int64
		if by > 0 {
			from, to = clip(in[1].value[i], mask("begin_mask", i), [2]int64{0, 0}), clip(in[2].value[i], mask("end_mask", i), [2]int64{d, 0})
		} else {
			from, to = min(clip(in[1].value[i], mask("begin_mask", i), [2]int64{d - 1, -1}), d-1), clip(in[2].value[i], mask("end_mask", i), [2]int64{-1, -1})
		}
		size := max((to-from+by-sign(by))/by, 0)
		if mask("shrink_axis_mask", i) {
			size = 1
		} else {
			s = append(s, size)
		}
		if k == 1 {
			first, count, step = from, size, by
		}
	}
	s = append(s, in[0].shape[k:]...)
	out.shape = s
	if v := in[0].value; v != nil && len(in[0].shape) == 1 && count <= maxValue {
		picked := []int64{}
		for i := range count {
			if at := first + i*step; at >= 0 && at < int64(len(v)) {
				picked = append(picked, v[at])
			}
		}
		if int64(len(picked)) == count {
			out.value = picked
		}
	}
}

func sign(x int64) int64 {
	if x < 0 {
		return -1
	}
	return 1
}
