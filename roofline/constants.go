package roofline

import (
	"placer/graph"
	"placer/units"
)

// builtin are the constants by architecture. Those of products marked "fitted"
// are what Fit returns for all samples of the table named; the tests refit them.
// docs/hardware-models.md states their errors on shapes that a fit has not seen.
//
// What the fitted ones have in common carries over to chips without
// measurements: Peak is 1 everywhere, Ends lies between 1.2 and 1.6 us whatever
// the chip and the type, and Feed is about 20 for matrix units that an autotuner
// drives.
var builtin = map[string]Params{
	// P100: no matrix units. Constants are assumptions; see vectorGEMM and memory.
	"sm_60": gpu(0.75, 2.2e-6, olderPatterns, nil),
	// V100: assumptions.
	"sm_70": gpu(0.80, 2.2e-6, olderPatterns, map[graph.DType]GEMMParams{graph.F16: tensorGEMM}),
	// A100: f16 fitted to Vidur's Llama-2-7B layers; tf32 and i8 are assumed to
	// behave alike.
	"sm_80": modernGPU(0.84, 1.1e-6, sm80Patterns, types(
		GEMMParams{Peak: 1, Feed: 26, Ends: 1.39e-6, Tail: 0.05, Fixed: 4.71e-6}, graph.F16, graph.BF16, graph.TF32, graph.I8)),
	// H100, H200: bf16 and tf32 fitted to the XLA table. Its f8 rates exceed the
	// chip's peak in 29 of 375 rows, so f8 has the B200's constants. f32, and what odd
	// rows cost, are as measured on an H200 (h200m).
	"sm_90": withAttention(flashHopper, modernGPU(0.90, 0.77e-6, sm90Patterns,
		types(GEMMParams{Peak: 1, Feed: 12.9, Ends: 1.56e-6, Tail: 1, Fixed: 2.88e-6, Odd: 5}, graph.F16, graph.BF16),
		types(GEMMParams{Peak: 1, Feed: 50.4, Ends: 1.19e-6, Tail: 0, Fixed: 5.50e-6, Odd: 2.15}, graph.TF32),
		types(GEMMParams{Peak: 0.844, Feed: 4.95, Ends: 3.7e-6, Tail: 1, Fixed: 4.81e-6}, graph.F32),
		types(f8GEMM, graph.F8, graph.I8))),
	// B200: all fitted to the XLA table, but f4 has the constants of f8.
	"sm_100": withAttention(flashBlackwell, modernGPU(0.90, 0.77e-6, sm90Patterns,
		types(GEMMParams{Peak: 1, Feed: 22.6, Ends: 1.47e-6, Tail: 0.76, Fixed: 2.90e-6}, graph.F16, graph.BF16),
		types(GEMMParams{Peak: 0.994, Feed: 19.6, Ends: 1.61e-6, Tail: 1, Fixed: 4.65e-6}, graph.TF32),
		types(f8GEMM, graph.F8, graph.I8, graph.F4))),
	// CPUs: assumptions. A core holds its tile in registers and first-level cache,
	// so operands cost little; starting the threads is the fixed time.
	"avx2":   cpu,
	"avx512": cpu,
}

// flash is FlashAttention-2 on an A100, whose best rates are 73% and 63% of the peak forward
// and backward, with heads of 128 columns (Dao, arXiv:2307.08691, section 4); Score is what
// leaves 0.9 to the products. Assumed for chips without figures.
var flash = AttentionParams{Forward: 0.90, Score: 4, Backward: 0.65}

// flashHopper is FlashAttention-2 on an H100, without that chip's own instructions:
// TestPublishedAttention has its figures, of which Forward and Score are those of sequences of
// 8,192 with heads of 64 and 128 columns, Backward that with 128.
var flashHopper = AttentionParams{Forward: 0.462, Score: 8.8, Backward: 0.31}

// flashBlackwell is FlashAttention-4 on a B200, whose sequences of 8,192 with heads of 128
// columns reach 1,358 TFLOP/s of 2,250 forward and 1,248 backward (Dao-AILab/flash-attention,
// pull requests 2605 and 2280); heads of 64 columns are slower than Score says (758).
var flashBlackwell = AttentionParams{Forward: 0.90, Score: 4, Backward: 0.60}

// f8GEMM is fitted to the B200's f8 products.
var f8GEMM = GEMMParams{Peak: 1, Feed: 18.7, Ends: 1.30e-6, Tail: 0.48, Fixed: 3.24e-6}

// vectorGEMM is assumed for f32 products on vector units: operands cost less
// than on matrix units, which compute faster (a product of 4096 in each dimension
// reaches 90% of the P100's peak, one of 8192 94%), ends are those of the measured chips.
var vectorGEMM = GEMMParams{Peak: 1, Feed: 5, Ends: 1.4e-6, Tail: 0.8, Fixed: 3e-6}

// tensorGEMM is assumed for matrix units without measurements: the middle of
// those measured.
var tensorGEMM = GEMMParams{Peak: 1, Feed: 20, Ends: 1.4e-6, Tail: 0.8, Fixed: 3e-6}

// Access patterns of older cards, assumed: the A40, with 8 GB/s for each multiprocessor, reaches
// 0.82 to 0.85 of its peak in elementwise kernels of a framework; the P100 (13 GB/s) and the V100
// (11 GB/s) ask for more bytes in flight.
var olderPatterns = patterns(0.85, 0.60, 0.45)

// patterns takes the fractions of three classes; copies with permuted axes and
// pooling windows read as reductions and elementwise ops do, half each.
func patterns(elementwise, reduction, gather float64) (p [graph.NumClasses]Pattern) {
	p[graph.ClassElementwise].Fraction, p[graph.ClassReduction].Fraction, p[graph.ClassGather].Fraction = elementwise, reduction, gather
	p[graph.ClassMove].Fraction = (elementwise + reduction) / 2
	p[graph.ClassPool] = p[graph.ClassMove]
	p[graph.ClassUpdate], p[graph.ClassOther] = p[graph.ClassElementwise], p[graph.ClassElementwise]
	return p
}

// Access patterns of modern cards, whose bandwidth of 19 to 52 GB/s for each multiprocessor is
// more than kernels reach that load one element at a time. Elementwise kernels are streams; the
// bandwidth and the ramp of sm_90 are theirs. Fitted to kernels of PyTorch on an H200
// (testdata/torch_ops.csv.gz); an A100 has the same by the clock, 1.41 GHz for 1.98.
var (
	sm90Patterns = modern(1)
	sm80Patterns = modern(1.41 / 1.98)
)

// modern takes the clock as a part of the H200's. Pooling windows are read as copies are.
func modern(clock float64) (p [graph.NumClasses]Pattern) {
	at := func(fraction, elements float64, wait units.Seconds) Pattern {
		return Pattern{Fraction: fraction, Elements: elements * clock, Wait: wait / units.Seconds(clock)}
	}
	p[graph.ClassUpdate] = at(0.944, 0, 0.43e-6)
	p[graph.ClassReduction] = at(0.503, 7.03, 2.47e-6)
	p[graph.ClassMove] = at(0.56, 5.44, 0.54e-6)
	p[graph.ClassGather] = at(0.70, 2.85, 0.34e-6)
	p[graph.ClassPool] = p[graph.ClassMove]
	return p
}

// types gives several element types the same constants.
func types(q GEMMParams, ts ...graph.DType) map[graph.DType]GEMMParams {
	m := map[graph.DType]GEMMParams{}
	for _, t := range ts {
		m[t] = q
	}
	return m
}

func gpu(bandwidth float64, ramp units.Seconds, pattern [graph.NumClasses]Pattern, products ...map[graph.DType]GEMMParams) Params {
	p := Params{GEMM: types(vectorGEMM, graph.F32), Bandwidth: bandwidth, Ramp: ramp, Vector: 0.5, Pattern: pattern}
	for _, m := range products {
		for t, q := range m {
			p.GEMM[t] = q
		}
	}
	return p
}

func withAttention(a AttentionParams, p Params) Params {
	p.Attention = a
	return p
}

// modernGPU is gpu where products have less of the bandwidth than streams.
func modernGPU(bandwidth float64, ramp units.Seconds, pattern [graph.NumClasses]Pattern, products ...map[graph.DType]GEMMParams) Params {
	p := gpu(bandwidth, ramp, pattern, products...)
	p.Products = 0.80
	return p
}

var cpu = Params{
	GEMM:      types(GEMMParams{Peak: 0.9, Feed: 2, Ends: 1e-6, Tail: 1, Fixed: 5e-6}, graph.F32),
	Bandwidth: 0.80, Ramp: 2e-6, Vector: 0.25,
	Pattern: patterns(1, 0.9, 0.4),
}
