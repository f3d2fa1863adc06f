package device

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"placer/hw/gpu"
	"placer/hw/gpu/ptxtest"
)

// TestGenerated: the PTX was made from the source beside it.
func TestGenerated(t *testing.T) { ptxtest.Generated(t, ptx, "kernels.cu") }

// TestParameters: every kernel of the PTX is known, with its number of parameters.
func TestParameters(t *testing.T) {
	want := map[string]int{}
	for k, name := range kernelNames {
		want[name] = kernelWords[k]
	}
	entries := strings.Split(ptx, ".entry ")[1:]
	if len(entries) != len(want) {
		t.Errorf("%d kernels in the PTX, %d known", len(entries), len(want))
	}
	for _, e := range entries {
		name, rest, _ := strings.Cut(e, "(")
		list, _, _ := strings.Cut(rest, ")")
		if n, ok := want[name]; !ok || strings.Count(list, ".param .u64") != n {
			t.Errorf("kernel %s has %d parameters of 64 bits, want %d", name, strings.Count(list, ".param .u64"), n)
		}
	}
}

func TestAssembles(t *testing.T) { ptxtest.Assembles(t, "kernels.ptx") }

// TestNames: no kernel has the name of a parameter of the functions that NVIDIA's
// assembler adds (strings ptxas | grep .func). It crashes at one of them.
func TestNames(t *testing.T) {
	for _, name := range []string{"mask", "src", "dst", "dst64", "ptr", "cnt", "res", "image", "parg", "ldm", "numerator"} {
		if slices.Contains(kernelNames[:], name) {
			t.Errorf("a kernel is named %s", name)
		}
	}
}

// trial is one launch: what the kernel gets, and how.
type trial struct {
	kernel      kernel
	buffers     []any // []float32, []float64 or []int32
	args        []any // int, float32, float64 or the index of a buffer, a place
	grid, block uint64
}

// place is an argument that points to a buffer.
type place int

// run does tr on d and returns the buffers as they are afterwards.
func (tr trial) run(d *Device) (after []any, err error) {
	defer d.leave(&err)
	d.enter()
	var at []gpu.Ptr
	for _, b := range tr.buffers {
		switch x := b.(type) {
		case []float32:
			at = append(at, d.alloc(4*len(x)))
			upload(d, at[len(at)-1], x)
		case []float64:
			at = append(at, d.alloc(8*len(x)))
			upload(d, at[len(at)-1], x)
		case []int32:
			at = append(at, d.alloc(4*len(x)))
			upload(d, at[len(at)-1], x)
		}
	}
	var words []uint64
	for _, a := range tr.args {
		switch a := a.(type) {
		case place:
			words = append(words, uint64(at[a]))
		case int:
			words = append(words, uint64(a))
		case float32:
			words = append(words, bits(a))
		case float64:
			words = append(words, math.Float64bits(a))
		}
	}
	d.launch(tr.kernel, tr.grid, tr.block, words...)
	for i, b := range tr.buffers {
		switch x := b.(type) {
		case []float32:
			y := make([]float32, len(x))
			download(d, y, at[i])
			d.sync()
			after = append(after, y)
		case []float64:
			y := make([]float64, len(x))
			download(d, y, at[i])
			d.sync()
			after = append(after, y)
		case []int32:
			y := make([]int32, len(x))
			download(d, y, at[i])
			d.sync()
			after = append(after, y)
		}
		d.free(at[i])
	}
	return after, nil
}

// compareKernels runs every kernel on d and on its reference, on random shapes.
func compareKernels(t *testing.T, d *Device) {
	reference := pretended(t, references())
	for k := range numKernels {
		t.Run(kernelNames[k], func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, uint64(k)))
			for range 12 {
				tr := newTrial(k, r)
				want, err := tr.run(reference)
				if err != nil {
					t.Fatal(err)
				}
				got, err := tr.run(d)
				if err != nil {
					t.Fatal(err)
				}
				for i := range want {
					what := fmt.Sprintf("arguments %v, buffer %d", tr.args, i)
					switch w := want[i].(type) {
					case []float32:
						close32(t, what, got[i].([]float32), w, 1e-5)
					case []float64:
						var a, b []float32
						for j, v := range w {
							a, b = append(a, float32(v)), append(b, float32(got[i].([]float64)[j]))
						}
						close32(t, what, b, a, 1e-5)
					case []int32:
						if g := got[i].([]int32); fmt.Sprint(g) != fmt.Sprint(w) {
							t.Fatalf("%s: %v, want %v", what, g, w)
						}
					}
				}
			}
		})
	}
}

// newTrial draws shapes and data for a kernel.
func newTrial(k kernel, r *rand.Rand) trial {
	n, d := 1+r.IntN(70), 1+r.IntN(70)
	floats := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	positive := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = 0.05 + 0.9*r.Float32()
		}
		return x
	}
	ints := func(n, from, to int) []int32 {
		x := make([]int32, n)
		for i := range x {
			x[i] = int32(from + r.IntN(to-from))
		}
		return x
	}
	add, copies := r.IntN(2), 1+r.IntN(3)
	tr := trial{kernel: k, grid: uint64(1 + r.IntN(4)), block: block}
	with := func(buffers ...any) func(args ...any) trial {
		return func(args ...any) trial {
			tr.buffers, tr.args = buffers, args
			return tr
		}
	}
	// A graph's lists, and who reads each node.
	start := []int32{0}
	var index []int32
	for range n {
		index = append(index, ints(r.IntN(4), 0, n)...)
		start = append(start, int32(len(index)))
	}
	index = append(index, 0) // no empty buffer
	heads, e, segments, past := 1+r.IntN(3), 1+r.IntN(40), 1+r.IntN(3), r.IntN(20)
	rows, m, lo := 1+r.IntN(20), 0, past
	m = rows + past
	total := segments * heads * rows
	after := lo + segments*rows // rows of the whole
	switch k {
	case kZero:
		return with(floats(n))(place(0), n)
	case kBiasAct:
		return with(floats(n*d), floats(d))(place(0), place(1), n*d, d, r.IntN(3))
	case kActBack:
		return with(floats(n), floats(n), floats(n))(place(0), place(1), place(2), n, 1+r.IntN(2))
	case kGatherMax:
		return with(floats(n*d), start, index, floats(n*d), ints(n*d, 0, 9))(place(0), place(1), place(2), place(3), place(4), n, d)
	case kGatherBack:
		lists := neighbours(start, index[:len(index)-1])
		back := readers(lists)
		from := make([]int32, n*d)
		for i := range from {
			from[i] = -1
			if near := lists.Index[lists.Start[i/d]:lists.Start[i/d+1]]; len(near) > 0 {
				from[i] = near[r.IntN(len(near))]
			}
		}
		return with(floats(n*d), positive(n*d), floats(n*d), from, back.Start, append(back.Index, 0))(place(0), place(1), place(2), place(3), place(4), place(5), n, d)
	case kLayerNorm:
		second := any(place(1))
		if add == 1 {
			second = 0
		}
		return with(floats(n*d), floats(n*d), floats(d), floats(d), floats(n*d), floats(n), floats(n))(place(0), second, place(2), place(3), place(4), place(5), place(6), n, d)
	case kLayerNormBack:
		second, db := any(place(1)), any(place(7))
		if copies == 1 {
			second, db = 0, 0
		}
		return with(floats(n*d), floats(n*d), floats(d), floats(n), positive(n), floats(n*d), floats(n*d), floats(n*d), floats(n*d))(
			place(0), second, place(2), place(3), place(4), place(5), place(6), add, db, r.IntN(2), place(8), n, d)
	case kColSum:
		chunk := 1 + r.IntN(n)
		tr.grid, tr.block = uint64((n+chunk-1)/chunk), wide(d)
		return with(floats(n*d), floats(int(tr.grid)*d))(place(0), place(1), n, d, chunk, r.Float32(), add)
	case kDSum:
		chunk := 1 + r.IntN(n)
		tr.grid, tr.block = uint64((n+chunk-1)/chunk), wide(d)
		x := make([]float64, n*d)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return with(x, make([]float64, int(tr.grid)*d))(place(0), place(1), n, d, chunk)
	case kMulRep:
		return with(floats(copies*n), floats(n), floats(copies*n))(place(0), place(1), place(2), copies*n, n, add)
	case kMulSum:
		return with(floats(n), floats(copies*n), floats(copies*n))(place(0), place(1), place(2), n, copies*n, add)
	case kAddRep:
		return with(floats(copies*n), floats(copies*n), floats(n))(place(0), place(1), place(2), copies*n, n)
	case kSumRep:
		return with(floats(n), floats(copies*n))(place(0), place(1), n, copies*n, add)
	case kEmbed:
		return with(floats(n*d), floats(5*d), ints(copies*n, -1, 5), floats(copies*n*d))(place(0), place(1), place(2), place(3), copies*n*d, n*d, d)
	case kEmbedBack:
		chunk := 1 + r.IntN(n)
		tr.grid, tr.block = uint64((n+chunk-1)/chunk), wide(d)
		return with(floats(n*d), ints(n, -1, 5), floats(int(tr.grid)*5*d))(place(0), place(1), place(2), n, d, chunk, 5)
	case kMask:
		na := r.IntN(2) * d
		return with(floats(n*d), floats(n*d), ints(d, 0, 2))(place(0), place(1), place(2), n*d, na, float32(-3), add)
	case kSoftmax, kSoftmaxAgain:
		return with(floats(total*m), floats(after*heads))(place(0), place(1), total, m, rows, heads, lo, float32(0.3))
	case kSoftmaxBack:
		return with(floats(total*m), positive(total*m), floats(after*heads*e), floats(after*heads*e))(place(0), place(1), place(2), place(3), total, m, rows, heads, e, lo, float32(0.3))
	case kAddMemory:
		return with(floats(n*3*d), floats(n*2*d))(place(0), place(1), n, d)
	case kColumns:
		w := 1 + r.IntN(d)
		return with(floats(n*d), floats(n*w))(place(0), d, place(1), w, n, w, add)
	case kSpread:
		return with(floats(n*d), floats(d))(place(0), place(1), n*d, d, float32(0.7), add)
	case kPPO:
		a, samples, shared, each := 1+r.IntN(9), 1+r.IntN(5), r.IntN(2), r.IntN(2)
		at, all, rows := r.IntN(3), 0, n
		all = at + n + r.IntN(3)
		if shared == 0 {
			rows = n * samples
		}
		per := 1
		if each == 1 {
			per = all
		}
		logProb := floats(samples * all)
		for i := range logProb {
			logProb[i] -= 1.5
		}
		x := floats(rows * a)
		for i := range x {
			if i%a > 0 && r.IntN(5) == 0 {
				x[i] = -1e9
			}
		}
		actions := make([]int32, samples*all) // choice 0 is never masked
		if r.IntN(2) == 0 {
			x, actions = floats(rows*a), ints(samples*all, 0, a)
		}
		return with(x, floats(rows*a), actions, logProb, floats(samples*per), make([]float64, 5*rows))(
			place(0), place(1), place(2), place(3), place(4), place(5), rows, a, samples, n, at, all, per, shared, 0.2, 1/float64(samples*n), 0.05/float64(rows))
	case kSquares:
		return with(floats(n*d), make([]float64, int(tr.grid)*block/32))(place(0), n*d, place(1))
	case kAdam:
		return with(floats(n), floats(n), positive(n), floats(n))(place(0), place(1), place(2), place(3), n, float32(0.5), float32(0.9), float32(0.999), float32(0.01), float32(1e-6))
	}
	panic("a kernel without a trial")
}
