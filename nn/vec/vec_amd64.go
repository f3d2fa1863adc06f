package vec

import "golang.org/x/sys/cpu"

// hasAVX2 is set once, before anything runs, and never written again.
var hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// hasAVX512 is set likewise. Only the exponential, the one kernel bound by
// arithmetic, has a form for it.
var hasAVX512 = hasAVX2 && cpu.X86.HasAVX512F

//go:noescape
func expShiftSumAVX512(dst, x *float32, n int, scale, shift float32) float32

// The kernels take n > 0 elements, a multiple of lanes.

//go:noescape
func addAVX2(dst, a, b *float32, n int)

//go:noescape
func mulAVX2(dst, a, b *float32, n int)

//go:noescape
func mulAddAVX2(dst, a, b *float32, n int)

//go:noescape
func axpyAVX2(dst, x *float32, n int, a float32)

//go:noescape
func scaleAVX2(dst *float32, n int, a float32)

//go:noescape
func dotAVX2(a, b *float32, n int) float32

//go:noescape
func sumAVX2(x *float32, n int) float32

//go:noescape
func sumSquaresAVX2(x *float32, n int, mean float32) float32

//go:noescape
func maxAVX2(x *float32, n int) float32

//go:noescape
func normalizeAVX2(dst, x *float32, n int, mean, scale float32)

//go:noescape
func expShiftSumAVX2(dst, x *float32, n int, scale, shift float32) float32

//go:noescape
func sigmoidBiasAVX2(dst, bias *float32, n int)

//go:noescape
func sigmoidBackAVX2(dst, y, dy *float32, n int)

//go:noescape
func reluBiasAVX2(dst, bias *float32, n int)

//go:noescape
func reluBackAVX2(dst, y, dy *float32, n int)

//go:noescape
func softmaxBackAVX2(dst, p, dp *float32, n int, c, scale float32)

//go:noescape
func maxArgAVX2(m *float32, arg *int32, x *float32, n int, id int32)

//go:noescape
func adamAVX2(w, m, v, grad *float32, n int, c *[7]float32)
