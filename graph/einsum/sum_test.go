package einsum

import (
	"fmt"
	"strings"
	"testing"

	"placer/graph"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		name, equation string
		operands       [][]int64
		out            graph.Shape
		gemm           graph.GEMM
		flops          float64
	}{
		{"a product", "ij,jk->ik", [][]int64{{3, 5}, {5, 7}}, graph.Shape{3, 7}, graph.GEMM{Batch: 1, M: 3, N: 7, K: 5}, 210},
		{"implicit", "ij,jk", [][]int64{{3, 5}, {5, 7}}, graph.Shape{3, 7}, graph.GEMM{Batch: 1, M: 3, N: 7, K: 5}, 210},
		{"Keras's projection into heads", "abc,cde->abde", [][]int64{{2, 9, 64}, {64, 4, 16}}, graph.Shape{2, 9, 4, 16}, graph.GEMM{Batch: 1, M: 18, N: 64, K: 64}, 2 * 18 * 64 * 64},
		{"Keras's attention", "aecd,abcd->acbe", [][]int64{{2, 11, 4, 16}, {2, 9, 4, 16}}, graph.Shape{2, 4, 9, 11}, graph.GEMM{Batch: 8, M: 11, N: 9, K: 16}, 2 * 8 * 11 * 9 * 16},
		{"rows of an ellipsis", "...x,xy->...y", [][]int64{{2, 9, 64}, {64, 32}}, graph.Shape{2, 9, 32}, graph.GEMM{Batch: 1, M: 18, N: 32, K: 64}, 2 * 18 * 64 * 32},
		{"a batch of an ellipsis", "...ij,...jk->...ik", [][]int64{{6, 3, 5}, {6, 5, 7}}, graph.Shape{6, 3, 7}, graph.GEMM{Batch: 6, M: 3, N: 7, K: 5}, 6 * 210},
		{"an ellipsis of one operand's 1", "...ij,...jk->...ik", [][]int64{{6, 3, 5}, {1, 5, 7}}, graph.Shape{6, 3, 7}, graph.GEMM{Batch: 1, M: 18, N: 7, K: 5}, 6 * 210},
		{"a letter behind an ellipsis", "i...j,j->i...", [][]int64{{3, 2, 5}, {5}}, graph.Shape{3, 2}, graph.GEMM{Batch: 1, M: 6, N: 1, K: 5}, 60},
		{"elements", "ij,ij->ij", [][]int64{{3, 5}, {3, 5}}, graph.Shape{3, 5}, graph.GEMM{}, 30},
		{"a diagonal", "ii->i", [][]int64{{4, 4}}, graph.Shape{4}, graph.GEMM{}, 8},
		{"three operands", "ij,jk,kl->il", [][]int64{{2, 3}, {3, 4}, {4, 5}}, graph.Shape{2, 5}, graph.GEMM{}, 2 * 2 * 3 * 4 * 5},
		{"no elements", "ij,jk->ik", [][]int64{{0, 5}, {5, 7}}, graph.Shape{0, 7}, graph.GEMM{}, 0},
	} {
		s, err := Of(c.equation, c.operands...)
		if err != nil || !s.Output.Equal(c.out) || s.GEMM != c.gemm || float64(s.FLOPs) != c.flops {
			t.Errorf("%s: %+v, %v", c.name, s, err)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		equation string
		operands [][]int64
		want     string
	}{
		{"ij,jk", [][]int64{{2, 3}}, "has 2 terms for 1 operands"},
		{"ij", [][]int64{{2}}, `has "ij" for an operand of shape [2]`},
		{"ij,jk", [][]int64{{2, 3}, {4, 5}}, "has j that is both 3 and 4"},
		{"i->j", [][]int64{{2}}, "has j in its result"},
		{"i...i...", [][]int64{{2, 2, 2, 2, 2}}, "has two ellipses in an operand"},
		{"...i,...i", [][]int64{{2, 2}, {3, 2}}, "has an ellipsis that is both 2 and 3"},
	} {
		if _, err := Of(c.equation, c.operands...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.equation, err, c.want)
		}
	}
}

// FuzzOf: no equation panics.
func FuzzOf(f *testing.F) {
	f.Add("...ij,jk->...ik", int64(2), int64(3))
	f.Add("i...j,j", int64(1), int64(1<<40))
	f.Fuzz(func(t *testing.T, equation string, a, b int64) {
		if s, err := Of(equation, []int64{a, b, 3}, []int64{3, b}); err == nil && s == nil {
			t.Error("nothing")
		}
	})
}

func ExampleOf() {
	s, err := Of("bhsd,bhtd->bhst", []int64{2, 12, 128, 64}, []int64{2, 12, 128, 64})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Output, s.GEMM)
	// Output: [2 12 128 128] {24 128 128 64}
}
