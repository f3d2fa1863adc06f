package transformerxl

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
)

// attended is the definition of Attention. The keys and values of memory rows
// are computed from past, those of a segment's own rows from x.
func attended(x, past, w, b []float64, segments []Segment, n, e, heads, width int) []float64 {
	all := heads * width
	qkv := nntest.AddRow(nntest.MatMul(x, w, n, e, 3*all), b)
	memory := nntest.AddRow(nntest.MatMul(past, w, n, e, 3*all), b)
	y := make([]float64, n*all)
	for _, s := range segments {
		for h := range heads {
			for i := s.Low; i < s.High; i++ {
				row := func(j int32) []float64 {
					from := qkv
					if j < s.Low {
						from = memory
					}
					return from[int(j)*3*all : (int(j)+1)*3*all]
				}
				var score []float64
				for j := s.Memory; j < s.High; j++ {
					dot := 0.0
					for c := h * width; c < (h+1)*width; c++ {
						dot += row(i)[c] * row(j)[all+c]
					}
					score = append(score, dot/math.Sqrt(float64(width)))
				}
				for j, p := range nntest.Softmax(score) {
					for c := h * width; c < (h+1)*width; c++ {
						y[int(i)*all+c] += p * row(s.Memory + int32(j))[2*all+c]
					}
				}
			}
		}
	}
	return y
}

// TestAttention compares with the definition. In the reference, memory is
// computed from the fixed copy of x but the moving weights: a cache without
// gradient.
func TestAttention(t *testing.T) {
	cases := []struct {
		bounds          []int32
		segment, memory int
		e, heads, width int
	}{
		{[]int32{0, 1}, 4, 4, 3, 1, 2},
		{[]int32{0, 10}, 4, 4, 5, 2, 3},
		{[]int32{0, 10}, 4, 0, 5, 2, 3},
		{[]int32{0, 10}, 4, 2, 5, 2, 3},
		{[]int32{0, 7, 8, 20}, 5, 5, 6, 3, 4},
		{[]int32{0, 80}, 32, 32, 4, 1, 25},
		{[]int32{0, 270}, 260, 260, 2, 1, 3},
	}
	for _, b := range nntest.Backends(t) {
		for _, c := range cases {
			n := int(c.bounds[len(c.bounds)-1])
			t.Run(fmt.Sprintf("%s/rows=%d/segment=%d/memory=%d", b.Name(), n, c.segment, c.memory), func(t *testing.T) {
				segments := Segments(c.bounds, c.segment, c.memory)
				nntest.Check(t, b, nntest.Case{
					Shapes: [][]int{{n, c.e}, {c.e, 3 * c.heads * c.width}, {3 * c.heads * c.width}},
					Build: func(g *nn.Graph, p []*nn.Param) *nn.Node {
						return Attention(g, g.Param(p[0]), p[1], p[2], c.heads, &segments)
					},
					Reference: func(x, fixed [][]float64) []float64 {
						return attended(x[0], fixed[0], x[1], x[2], segments, n, c.e, c.heads, c.width)
					},
				})
			})
		}
	}
}

func TestSegments(t *testing.T) {
	cases := []struct {
		name           string
		bounds         []int32
		length, memory int
		want           []Segment
	}{
		{"one", []int32{0, 3}, 4, 4, []Segment{{0, 0, 3}}},
		{"exact", []int32{0, 8}, 4, 4, []Segment{{0, 0, 4}, {0, 4, 8}}},
		{"rest", []int32{0, 9}, 4, 2, []Segment{{0, 0, 4}, {2, 4, 8}, {6, 8, 9}}},
		{"no memory", []int32{0, 5}, 4, 0, []Segment{{0, 0, 4}, {4, 4, 5}}},
		{"memory stays in the graph", []int32{0, 5, 10}, 4, 4, []Segment{{0, 0, 4}, {0, 4, 5}, {5, 5, 9}, {5, 9, 10}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Segments(c.bounds, c.length, c.memory); !slices.Equal(got, c.want) {
				t.Errorf("Segments = %v, want %v", got, c.want)
			}
		})
	}
}

func TestConfigValidateNamesEveryFault(t *testing.T) {
	if err := Default(8).Validate(); err != nil {
		t.Fatal(err)
	}
	c := Config{Memory: 3, Segment: 2}
	err := fmt.Sprint(c.Validate())
	for _, want := range []string{"width", "layers", "heads", "inner", "choices", "memory of 3"} {
		if !strings.Contains(err, want) {
			t.Errorf("Validate: %s, want it to name %q", err, want)
		}
	}
}
