package tensorflow

import (
	"fmt"
	"slices"
	"strings"

	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"
	typespb "github.com/wamuir/graft/tensorflow/core/framework/types_go_proto"
)

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
		s, err := imp.inputShape(n)
		if err != nil {
			return err
		}
		out.shape = s
		out.resource = n.Op == "VarHandleOp" || n.Attr["dtype"].GetType() == typespb.DataType_DT_RESOURCE
	case "ReadVariableOp", "Identity", "Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "LoopCond", "StopGradient", "PreventGradient", "Snapshot", "PlaceholderWithDefault",
		"Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Sigmoid", "Tanh", "Exp", "Log", "Log1p", "Sqrt", "Rsqrt", "Square", "Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Reciprocal", "Softplus", "Erf", "Sin", "Cos", "LogicalNot", "Cast",
		"Softmax", "LogSoftmax", "BiasAdd", "ZerosLike", "OnesLike", "AddN", "ReluGrad", "Relu6Grad", "SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "SoftplusGrad", "EluGrad", "LRN", "IsFinite", "IsNan",
		"MaxPoolGrad", "ReverseV2", "Cumsum", "IdentityN", "Pow1", "CheckNumerics", "EnsureShape", "InvertPermutation", "ClipByValue", "Real", "Imag", "ComplexAbs", "Angle", "Conj":
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
	case "Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "FloorDiv", "FloorMod", "Mod", "Maximum", "Minimum", "Pow", "SquaredDifference", "DivNoNan", "MulNoNan", "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr", "BitwiseAnd", "TruncateDiv", "Xdivy", "Complex":
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
	case "Shape", "ShapeN", "VariableShape":
		for k := range outs {
			if s := shapeOf(k); s != nil {
				outs[k].shape = []int64{int64(len(s))}
				if len(s) <= maxValue {
					outs[k].value = s
				}
			}
		}
	case "MatMul", "_FusedMatMul", "SparseMatMul":
		y := shapeOf(1)
		if len(x) == 2 && len(y) == 2 {
			set([]int64{x[flag(n, "transpose_a")], y[1-flag(n, "transpose_b")]})
		}
	case "Einsum", "XlaEinsum":
		if sum := einsumOf(n, in); sum != nil {
			set(sum.Output)
		}
	case "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3":
		y := shapeOf(1)
		if len(x) >= 2 && len(y) >= 2 {
			outer := broadcast(x[:len(x)-2], y[:len(y)-2])
			if outer != nil {
				set(append(slices.Clone(outer), x[len(x)-2+flag(n, "adj_x")], y[len(y)-1-flag(n, "adj_y")]))
			}
		}
	case "Conv2D", "_FusedConv2D", "DepthwiseConv2dNative", "FusedDepthwiseConv2dNative", "MaxPool", "AvgPool", "Conv3D", "_FusedConv3D":
		set(window(n, x, shapeOf(1)))
	case "Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput", "AvgPoolGrad", "Conv3DBackpropInputV2":
		set(valueOf(0))
	case "Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter", "Conv3DBackpropFilterV2":
		set(valueOf(1))
	case "Conv3DBackpropInput":
		set(x)
	case "Conv3DBackpropFilter":
		set(shapeOf(1))
	case "CudnnRNN", "CudnnRNNV2", "CudnnRNNV3":
		if h := shapeOf(1); len(x) == 3 && len(h) == 3 && len(outs) > 2 {
			wide := h[2]
			if string(n.Attr["direction"].GetS()) == "bidirectional" && wide < 1<<40 {
				wide *= 2
			}
			set([]int64{x[0], x[1], wide})
			outs[1].shape, outs[2].shape = h, shapeOf(2)
		}
	case "CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3": // as the input, the states and the weights
		for k := range min(len(outs), 4) {
			outs[k].shape = shapeOf(k)
		}
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
		if set(reduced(x, valueOf(1), keep)); len(out.shape) == 0 && len(x) == 1 && out.shape != nil {
			out.value = folded(n.Op, valueOf(0))
		}
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
			if k, ok := axisOf(v[0], len(x)+1); ok {
				set(slices.Insert(slices.Clone(x), k, 1))
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
			if k, ok := axisOf(v[0], len(s)); ok {
				part := slices.Clone(s)
				part[k] /= int64(len(outs))
				for i := range outs {
					outs[i].shape = part
				}
			}
		}
	case "Pack":
		if x != nil {
			if k, ok := axisOf(n.Attr["axis"].GetI(), len(x)+1); ok {
				set(slices.Insert(slices.Clone(x), k, int64(len(in))))
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
		if k, ok := axisOf(n.Attr["axis"].GetI(), len(x)); ok {
			s := slices.Delete(slices.Clone(x), k, k+1)
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
			if len(x) == 1 {
				out.value = gathered(valueOf(0), valueOf(1))
			}
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
