package tfevents

import (
	"math"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// Value is one number, or one histogram, of a step.
type Value struct{ encoded []byte }

// Fields of Summary.Value and HistogramProto.
const (
	valueTag       = 1
	valueScalar    = 2 // float
	valueHistogram = 5

	histogramMin, histogramMax, histogramNum = 1, 2, 3 // doubles
	histogramSum, histogramSumSquares        = 4, 5    // doubles
	histogramLimit, histogramBucket          = 6, 7    // packed doubles
)

// Scalar is the number v under tag, such as "train/reward".
func Scalar(tag string, v float64) Value {
	b := protowire.AppendTag(tagged(tag), valueScalar, protowire.Fixed32Type)
	return Value{protowire.AppendFixed32(b, math.Float32bits(float32(v)))}
}

// Histogram is the distribution of xs under tag, in TensorBoard's usual
// exponential buckets. What is not finite is left out.
func Histogram(tag string, xs []float64) Value {
	limits := bucketLimits()
	count := make([]float64, len(limits))
	low, high, num, sum, squares := 0.0, 0.0, 0.0, 0.0, 0.0
	for _, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		if num == 0 {
			low, high = x, x
		}
		low, high, num, sum, squares = min(low, x), max(high, x), num+1, sum+x, squares+x*x
		k, _ := slices.BinarySearch(limits, x)
		count[k]++
	}
	var h []byte
	for _, f := range []struct {
		field protowire.Number
		v     float64
	}{{histogramMin, low}, {histogramMax, high}, {histogramNum, num}, {histogramSum, sum}, {histogramSumSquares, squares}} {
		h = protowire.AppendTag(h, f.field, protowire.Fixed64Type)
		h = protowire.AppendFixed64(h, math.Float64bits(f.v))
	}
	// Of a run of empty buckets only the last is kept: it gives the lower edge of
	// the filled one behind it.
	var edges, counts []byte
	for i, n := range count {
		if n > 0 || i+1 < len(count) && count[i+1] > 0 {
			edges = protowire.AppendFixed64(edges, math.Float64bits(limits[i]))
			counts = protowire.AppendFixed64(counts, math.Float64bits(n))
		}
	}
	h = protowire.AppendBytes(protowire.AppendTag(h, histogramLimit, protowire.BytesType), edges)
	h = protowire.AppendBytes(protowire.AppendTag(h, histogramBucket, protowire.BytesType), counts)
	return Value{protowire.AppendBytes(protowire.AppendTag(tagged(tag), valueHistogram, protowire.BytesType), h)}
}

func tagged(tag string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, valueTag, protowire.BytesType), tag)
}

// bucketLimits returns the upper edges, each 1.1 times as far from zero as the
// next, from ±1e-12 to ±1e20, and the largest number.
var bucketLimits = sync.OnceValue(func() []float64 {
	var up []float64
	for v := 1e-12; v < 1e20; v *= 1.1 {
		up = append(up, v)
	}
	limits := []float64{}
	for _, v := range slices.Backward(up) {
		limits = append(limits, -v)
	}
	limits = append(limits, 0)
	return append(append(limits, up...), math.MaxFloat64)
})
