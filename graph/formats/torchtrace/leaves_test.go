package torchtrace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"placer/graph"
)

// ran writes a node of a trace, within the node around, from tensors of shapes [4,4] by number to
// one of them; 0 for none.
func ran(id, around int, name string, to int, from ...int) string {
	tensors := func(list []int) (values, shapes, types string) {
		var v, s, t []string
		for _, k := range list {
			if k > 0 {
				v, s, t = append(v, fmt.Sprintf(`[%d, %d, 0, 16, 4, "cpu"]`, k, k)), append(s, "[4, 4]"), append(t, `"Tensor(float)"`)
			}
		}
		return strings.Join(v, ", "), strings.Join(s, ", "), strings.Join(t, ", ")
	}
	iv, is, it := tensors(from)
	ov, os, ot := tensors([]int{to})
	return fmt.Sprintf(`{"id": %d, "name": %q, "ctrl_deps": %d, "inputs": {"values": [%s], "shapes": [%s], "types": [%s]}, "outputs": {"values": [%s], "shapes": [%s], "types": [%s]}, "attrs": []}`, id, name, around, iv, is, it, ov, os, ot)
}

// Products, norms and sums of PyTorch have operators within them that make room, give a view or
// clear the result: they are ops all the same, and these are none. Operators that run others are
// these, and of products within products the innermost counts.
func TestLeaves(t *testing.T) {
	nodes := []string{
		ran(2, 1, "aten::linear", 3, 1, 2), ran(3, 2, "aten::t", 20, 2), ran(4, 3, "aten::transpose", 20, 2), ran(5, 4, "aten::as_strided", 20, 2),
		ran(6, 2, "aten::mm", 3, 1, 20), ran(7, 6, "aten::resolve_conj", 1, 1), ran(8, 6, "aten::empty", 21),
		ran(10, 1, "aten::layer_norm", 4, 3), ran(11, 10, "aten::native_layer_norm", 4, 3), ran(12, 11, "aten::empty", 22),
		ran(15, 1, "aten::sum", 5, 4), ran(16, 15, "aten::as_strided", 23, 5), ran(17, 15, "aten::fill_", 23, 23),
		ran(20, 1, "aten::contiguous", 6, 5), ran(21, 20, "aten::clone", 6, 5), ran(22, 21, "aten::empty_like", 24, 5), ran(23, 21, "aten::copy_", 6, 24, 5),
		ran(30, 1, "aten::convolution", 7, 6, 2), ran(31, 30, "aten::_convolution", 7, 6, 2), ran(32, 31, "aten::bmm", 7, 6, 2), ran(33, 32, "aten::resize_", 25, 25),
		ran(40, 1, "aten::erfc", 8, 7), ran(41, 40, "aten::empty", 26),
		ran(50, 1, "record_param_comms: 1", 0), ran(51, 50, "aten::relu", 9, 8), ran(52, 51, "aten::clamp_min", 9, 8),
		ran(60, 60, "aten::neg", 10, 9), // within itself
	}
	x, err := ImportExecution([]byte(`{"schema": "1.1.0-chakra.0.0.4", "pid": 1, "nodes": [`+strings.Join(nodes, ",\n")+"]}"), "f")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range graph.OpID(x.Graph.NumOps()) {
		if o := x.Graph.Op(i); o.Kind != "Placeholder" {
			got = append(got, o.Name)
		}
	}
	if want := []string{"as_strided_5", "mm_6", "native_layer_norm_11", "sum_15", "clone_21", "bmm_32", "erfc_40", "relu_51", "neg_60"}; !slices.Equal(got, want) {
		t.Errorf("ops %v, want %v", got, want)
	}
}
