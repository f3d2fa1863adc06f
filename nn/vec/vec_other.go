//go:build !amd64

package vec

// hasAVX2 is a constant here, so the calls below are compiled away.
const (
	hasAVX2   = false
	hasAVX512 = false
)

const noKernel = "vec: no assembly kernel on this processor"

func addAVX2(dst, a, b *float32, n int)                      { panic(noKernel) }
func mulAVX2(dst, a, b *float32, n int)                      { panic(noKernel) }
func mulAddAVX2(dst, a, b *float32, n int)                   { panic(noKernel) }
func axpyAVX2(dst, x *float32, n int, a float32)             { panic(noKernel) }
func scaleAVX2(dst *float32, n int, a float32)               { panic(noKernel) }
func dotAVX2(a, b *float32, n int) float32                   { panic(noKernel) }
func sumAVX2(x *float32, n int) float32                      { panic(noKernel) }
func sumSquaresAVX2(x *float32, n int, mean float32) float32 { panic(noKernel) }
func maxAVX2(x *float32, n int) float32                      { panic(noKernel) }
func normalizeAVX2(dst, x *float32, n int, mean, scale float32) {
	panic(noKernel)
}
func expShiftSumAVX2(dst, x *float32, n int, scale, shift float32) float32   { panic(noKernel) }
func sigmoidBiasAVX2(dst, bias *float32, n int)                              { panic(noKernel) }
func sigmoidBackAVX2(dst, y, dy *float32, n int)                             { panic(noKernel) }
func reluBiasAVX2(dst, bias *float32, n int)                                 { panic(noKernel) }
func reluBackAVX2(dst, y, dy *float32, n int)                                { panic(noKernel) }
func softmaxBackAVX2(dst, p, dp *float32, n int, c, scale float32)           { panic(noKernel) }
func maxArgAVX2(m *float32, arg *int32, x *float32, n int, id int32)         { panic(noKernel) }
func expShiftSumAVX512(dst, x *float32, n int, scale, shift float32) float32 { panic(noKernel) }
func adamAVX2(w, m, v, grad *float32, n int, c *[7]float32)                  { panic(noKernel) }
