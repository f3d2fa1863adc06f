package tensorflow

import (
	"slices"
	"strings"

	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"
	typespb "github.com/wamuir/graft/tensorflow/core/framework/types_go_proto"
)

// types returns the types of the outputs of n, which are as many as the outputs that the
// operator is known to have.
func types(n *nodepb.NodeDef, in []output, shapes int) ([]elem, error) {
	if list := listTypes(n); list != nil {
		return list, nil
	}
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
	case "BatchMatMulV3":
		if n.Attr["Tout"] != nil {
			return []elem{of("Tout")}, nil
		}
	case "Complex", "Real", "Imag", "Angle", "ComplexAbs", "RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D", "FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D":
		return []elem{complexType(n)}, nil
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
	case "CudnnRNN", "CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3":
		count = 4
	case "CudnnRNNV2", "CudnnRNNV3":
		count = 5
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
	if n.Op == "While" || n.Op == "StatelessWhile" {
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

// complexType is the type of the result of an operator between real and complex numbers. Files
// leave out what is an operator's default, a complex number of two floats.
func complexType(n *nodepb.NodeDef) elem {
	key, otherwise := "Tout", typespb.DataType_DT_FLOAT
	switch {
	case strings.HasPrefix(n.Op, "IRFFT"):
		key = "Treal"
	case strings.Contains(n.Op, "FFT"):
		key, otherwise = "Tcomplex", typespb.DataType_DT_COMPLEX64
	case n.Op == "Complex":
		otherwise = typespb.DataType_DT_COMPLEX64
	}
	if a := n.Attr[key]; a != nil {
		return elemOf(a.GetType())
	}
	return elemOf(otherwise)
}
