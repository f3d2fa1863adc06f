package tensorflow

import (
	"math"
	"slices"
	"strings"

	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"
)

// axisOf returns the place among rank axes that k names, which counts from the end where
// it is negative; false where there is no such axis.
func axisOf(k int64, rank int) (int, bool) {
	if k < 0 {
		k += int64(rank)
	}
	return int(k), k >= 0 && k < int64(rank)
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

// folded returns the one number that a reduction makes of all of v.
func folded(op string, v []int64) []int64 {
	by, ok := map[string]string{"Prod": "Mul", "Sum": "Add", "Max": "Maximum", "Min": "Minimum"}[op]
	if !ok || len(v) == 0 {
		return nil
	}
	out := v[:1]
	for _, x := range v[1:] {
		out = arithmetic(by, out, []int64{x})
	}
	return out
}

// gathered returns the numbers of v at places at.
func gathered(v, at []int64) []int64 {
	if v == nil || at == nil {
		return nil
	}
	out := make([]int64, len(at))
	for k, i := range at {
		if i < 0 || i >= int64(len(v)) {
			return nil
		}
		out[k] = v[i]
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
	s := slices.Clone(in[0].shape)
	k, ok := axisOf(axis[0], len(s))
	if !ok {
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
// [height,width,in,out] of a convolution, nothing for a pooling; in three dimensions
// [depth,height,width,in,out].
func window(n *nodepb.NodeDef, x, kernel []int64) []int64 {
	rank := len(x)
	if rank != 4 && (rank != 5 || len(kernel) != 5) {
		return nil
	}
	h, c := 1, rank-1
	if format := string(n.Attr["data_format"].GetS()); format == "NCHW" || format == "NCDHW" {
		h, c = 2, 1
	}
	stride, size, dilation := n.Attr["strides"].GetList().GetI(), n.Attr["ksize"].GetList().GetI(), n.Attr["dilations"].GetList().GetI()
	if len(stride) != rank {
		return nil
	}
	s := slices.Clone(x)
	for i := range rank - 2 {
		var k int64
		switch {
		case strings.HasSuffix(n.Op, "Pool"):
			if len(size) != 4 {
				return nil
			}
			k = size[h+i]
		case len(kernel) == rank:
			k = kernel[i]
		default:
			return nil
		}
		if len(dilation) == rank && dilation[h+i] > 1 && dilation[h+i] < 1<<20 && k < 1<<20 {
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
			if len(pads) != 2*rank {
				return nil
			}
			d += pads[2*(h+i)] + pads[2*(h+i)+1] - (k - 1)
		}
		s[h+i] = max((d+stride[h+i]-1)/stride[h+i], 0)
	}
	if len(kernel) == rank {
		s[c] = kernel[rank-1]
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
