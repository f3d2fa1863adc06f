package tensorflow

import (
	"strings"

	typespb "github.com/wamuir/graft/tensorflow/core/framework/types_go_proto"

	"placer/graph"
	"placer/graph/formats/foreign"
)

// elem is an element type: how graphs name it, and its bits.
type elem struct {
	dtype graph.DType
	bits  int64
	float bool
}

// bytes returns what n elements occupy, packed where they are smaller than a byte.
func (e elem) bytes(n int64) int64 { return (n*e.bits + 7) / 8 }

// pair reports whether e is of complex numbers.
func (e elem) pair() bool { return !e.float && (e.dtype == graph.F32 || e.dtype == graph.F64) }

// Types of TensorFlow's types.proto that the generated package has in comments alone.
const (
	float8E4M3FNUZ    typespb.DataType = 26
	float8E4M3B11FNUZ typespb.DataType = 27
	float8E5M2FNUZ    typespb.DataType = 28
)

// elemOf returns an element type; strings, resources and variants have no size.
func elemOf(t typespb.DataType) elem {
	if t > 100 {
		t -= 100 // a reference
	}
	switch t {
	case typespb.DataType_DT_FLOAT:
		return elem{graph.F32, 32, true}
	case typespb.DataType_DT_DOUBLE:
		return elem{graph.F64, 64, true}
	case typespb.DataType_DT_HALF:
		return elem{graph.F16, 16, true}
	case typespb.DataType_DT_BFLOAT16:
		return elem{graph.BF16, 16, true}
	case typespb.DataType_DT_FLOAT8_E5M2, typespb.DataType_DT_FLOAT8_E4M3FN, float8E4M3FNUZ, float8E4M3B11FNUZ, float8E5M2FNUZ:
		return elem{graph.F8, 8, true}
	case typespb.DataType_DT_INT4, typespb.DataType_DT_UINT4:
		return elem{graph.I8, 4, false}
	case typespb.DataType_DT_INT32, typespb.DataType_DT_UINT32, typespb.DataType_DT_QINT32:
		return elem{graph.I32, 32, false}
	case typespb.DataType_DT_INT64, typespb.DataType_DT_UINT64:
		return elem{graph.I64, 64, false}
	case typespb.DataType_DT_INT16, typespb.DataType_DT_UINT16, typespb.DataType_DT_QINT16, typespb.DataType_DT_QUINT16:
		return elem{graph.I32, 16, false}
	case typespb.DataType_DT_INT8, typespb.DataType_DT_UINT8, typespb.DataType_DT_QINT8, typespb.DataType_DT_QUINT8:
		return elem{graph.I8, 8, false}
	case typespb.DataType_DT_BOOL:
		return elem{graph.Bool, 8, false}
	case typespb.DataType_DT_COMPLEX64:
		return elem{graph.F32, 64, false}
	case typespb.DataType_DT_COMPLEX128:
		return elem{graph.F64, 128, false}
	}
	return elem{graph.I8, 0, false}
}

// kindOf returns the graph's name of an operator.
func kindOf(op string) graph.Kind {
	switch op {
	case "Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "LoopCond", "_Retval", "_DeviceRetval", "Snapshot", "EnsureShape":
		return "Identity"
	case "Switch", "RefSwitch", "Merge", "RefMerge":
		return "IdentityN"
	case "PlaceholderV2", "PlaceholderWithDefault", "_Arg", "_DeviceArg", "IteratorGetNext", "QueueDequeueV2", "QueueDequeueManyV2", "FIFOQueueV2", "Iterator", "IteratorV2", "MakeIterator":
		return "Placeholder"
	case "Variable":
		return "VariableV2"
	case "BatchMatMulV3":
		return "BatchMatMulV2"
	case "_FusedMatMul", "SparseMatMul":
		return "MatMul"
	case "XlaEinsum":
		return "Einsum"
	case "_FusedConv3D":
		return "Conv3D"
	case "Conv3DBackpropInput", "Conv3DBackpropInputV2", "Conv3DBackpropFilter", "Conv3DBackpropFilterV2":
		return "ConvGrad"
	case "_FusedConv2D":
		return "Conv2D"
	case "FusedDepthwiseConv2dNative":
		return "DepthwiseConv2dNative"
	case "FusedBatchNormV2":
		return "FusedBatchNorm"
	case "FusedBatchNormGradV2":
		return "FusedBatchNormGrad"
	case "SelectV2":
		return "Select"
	case "TopKV2":
		return "TopK"
	case "GatherNd":
		return "GatherND"
	case "ResourceGather":
		return "GatherV2"
	case "ResourceScatterAdd":
		return "ScatterAdd"
	case "AssignVariableOp":
		return "Assign"
	case "AssignAddVariableOp":
		return "AssignAdd"
	case "AssignSubVariableOp":
		return "AssignSub"
	case "ResourceApplyKerasMomentum":
		return "ApplyMomentum"
	case "ResizeNearestNeighbor", "ResizeBilinear":
		return "Resize"
	case "NonMaxSuppressionV2", "NonMaxSuppressionV3":
		return "NonMaxSuppression"
	case "SparseSegmentMean":
		return "Mean"
	case "TensorListStack":
		return "Pack"
	case "EmptyTensorList", "TensorListFromTensor", "TensorListReserve", "TensorListSetItem", "TensorListGetItem", "TensorListPushBack", "TensorListPopBack", "TensorListLength", "TensorListElementShape":
		return "IdentityN" // names of tensors change hands
	case "Complex", "Real", "Imag":
		return "Cast"
	case "ComplexAbs":
		return "Abs"
	case "Conj":
		return "Neg"
	case "SegmentSum", "SegmentMean":
		return "UnsortedSegmentSum"
	case "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel":
		return "QuantizeLinear"
	case "Assert", "VarIsInitializedOp", "VarIsInitialized":
		return "NoOp"
	case "VariableShape":
		return "Shape"
	case "RandomStandardNormal", "TruncatedNormal", "ParameterizedTruncatedNormal":
		return "RandomStandardNormal"
	}
	if rest, ok := strings.CutPrefix(op, "Resource"); ok {
		if _, known := graph.FactsOf(graph.Kind(rest)); known {
			return graph.Kind(rest)
		}
	}
	return graph.Kind(foreign.Clean(op))
}

// phaseOf returns the part of a training step that a node is of, by the names that
// TensorFlow's gradients and optimizers give.
func phaseOf(name string, kind graph.Kind) graph.Phase {
	switch {
	case strings.HasPrefix(string(kind), "Apply") || strings.HasPrefix(string(kind), "SparseApply"):
		return graph.Update
	case strings.HasPrefix(name, "gradients") || strings.Contains(name, "/gradients/") || strings.Contains(name, "gradient_tape/"):
		return graph.Backward
	}
	return graph.Forward
}

// moduleOf returns the path of the scope that a node is in, of its forward op where it
// is a gradient.
func moduleOf(name string) string {
	var path []string
	parts := strings.Split(name, "/")
	for _, p := range parts[:len(parts)-1] {
		if p == "gradients" || p == "gradient_tape" {
			continue
		}
		if i := strings.Index(p, "_grad"); i > 0 {
			break
		}
		path = append(path, p)
	}
	return foreign.Clean(strings.Join(path, "."))
}
