package roofline

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"placer/graph"
	"placer/hw"
	"placer/units"
)

// Sample is one measured op.
type Sample struct {
	Kind    graph.Kind
	DType   graph.DType
	GEMM    graph.GEMM
	FLOPs   units.FLOPs // of ops that are no products
	Bytes   units.Bytes // read and written
	Seconds units.Seconds
	// Weight is what the sample counts for in FitPattern, its share of a step for one; 0 stands for 1.
	Weight float64
}

func (s *Sample) op() *graph.Op {
	return &graph.Op{Kind: s.Kind, DType: s.DType, GEMM: s.GEMM, FLOPs: s.FLOPs + s.GEMM.FLOPs(), Bytes: s.Bytes}
}

// Folds is the number of parts that Fold makes.
const Folds = 3

// Fold returns the part, 0..Folds-1, that a sample belongs to in cross-validation.
// A product and its transpose are always in one part, since a library treats
// them alike.
func (s *Sample) Fold() int {
	m := s.GEMM
	h := uint64(14695981039346656037) // FNV-1a, a word at a time
	for _, x := range []int64{m.Batch, min(m.M, m.N), max(m.M, m.N), m.K} {
		h = (h ^ uint64(x)) * 1099511628211
	}
	return int((h >> 29) % Folds)
}

// Report says how far predictions are from measurements.
type Report struct {
	Samples int
	MAPE    float64 // mean of |predicted/measured - 1|
	P95     float64 // its 95th percentile
	// Kendall is the rank correlation (tau-b) of predicted and measured times: 1
	// when every pair is ordered alike.
	Kendall float64
}

func (r Report) String() string {
	return fmt.Sprintf("%d samples, mean error %.1f%%, p95 %.1f%%, tau %.3f", r.Samples, 100*r.MAPE, 100*r.P95, r.Kendall)
}

// NewReport compares predicted with measured times.
func NewReport(predicted, measured []units.Seconds) Report {
	if len(predicted) != len(measured) {
		panic(fmt.Sprintf("roofline: %d predictions for %d measurements", len(predicted), len(measured)))
	}
	r := Report{Samples: len(measured)}
	if r.Samples == 0 {
		return r
	}
	errs := make([]float64, len(measured))
	for i := range errs {
		errs[i] = math.Abs(float64(predicted[i]/measured[i]) - 1)
		r.MAPE += errs[i] / float64(len(errs))
	}
	slices.Sort(errs)
	r.P95 = errs[len(errs)*95/100]
	r.Kendall = kendall(predicted, measured)
	return r
}

// Predict returns the times of the samples on d with the constants p. d.Launch
// counts: set it to zero where the samples are durations of kernels alone.
func Predict(samples []Sample, d *hw.Device, p Params) []units.Seconds {
	x := calibrationModel(d, p)
	t := make([]units.Seconds, len(samples))
	for i := range samples {
		t[i] = x.cost(samples[i].op()).Seconds()
	}
	return t
}

// Evaluate compares the predictions of p on d with the samples.
func Evaluate(samples []Sample, d *hw.Device, p Params) Report {
	measured := make([]units.Seconds, len(samples))
	for i := range samples {
		measured[i] = samples[i].Seconds
	}
	return NewReport(Predict(samples, d, p), measured)
}

// CrossValidate fits the products of type t on all parts but one and predicts
// that one, for each part in turn, so that every sample is predicted by constants
// that have not seen it.
func CrossValidate(samples []Sample, d *hw.Device, p Params, t graph.DType) (Report, error) {
	var predicted, measured []units.Seconds
	for k := range Folds {
		var seen, held []Sample
		for _, s := range samples {
			if s.Fold() == k {
				held = append(held, s)
				measured = append(measured, s.Seconds)
			} else {
				seen = append(seen, s)
			}
		}
		q, err := Fit(seen, d, p, t)
		if err != nil {
			return Report{}, fmt.Errorf("part %d: %w", k, err)
		}
		predicted = append(predicted, Predict(held, d, p.With(t, q))...)
	}
	return NewReport(predicted, measured), nil
}

// calibrationModel costs single ops with the constants p.
func calibrationModel(d *hw.Device, p Params) *deviceModel {
	cfg := Default()
	cfg.Params = map[string]Params{d.Arch: p}
	return newDeviceModel(d, cfg)
}

// Fit returns the constants for products of type t on d that make the mean
// |log(predicted/measured)| over the samples least, everything else of p as it
// is. Memory is fitted where p has it, from there; Odd where three samples tell, which
// the other constants are not fitted to. The search is deterministic. d.Launch
// counts, as in Evaluate.
func Fit(samples []Sample, d *hw.Device, p Params, t graph.DType) (GEMMParams, error) {
	if len(samples) < 10 {
		return GEMMParams{}, fmt.Errorf("roofline: %d samples are too few to fit 5 constants", len(samples))
	}
	for i, s := range samples {
		if !(s.Seconds > 0) || s.GEMM.IsZero() || s.DType != t {
			return GEMMParams{}, fmt.Errorf("roofline: sample %d (%v, %v, %v) is no measured product of %v", i, s.GEMM, s.DType, s.Seconds, t)
		}
	}
	var even, rest []Sample
	for _, s := range samples {
		if odd(s.GEMM, t) {
			rest = append(rest, s)
		} else {
			even = append(even, s)
		}
	}
	if len(even) < 10 || len(rest) < 3 {
		even, rest = samples, nil
	}
	samples = even
	ops := make([]*graph.Op, len(samples))
	for i := range samples {
		ops[i] = samples[i].op()
	}
	x := calibrationModel(d, p)
	memory := p.gemm(t).Memory
	loss := func(v []float64) float64 {
		x.reset(t, unpack(v))
		sum := 0.0
		for i, o := range ops {
			sum += math.Abs(math.Log(float64(x.cost(o).Seconds() / samples[i].Seconds)))
		}
		return sum / float64(len(ops))
	}
	best, at := math.Inf(1), []float64(nil)
	for _, peak := range []float64{0.95, 0.75} { // two starts: tile and tail trade off
		v := pack(GEMMParams{Peak: peak, Feed: 16, Ends: 1e-6, Tail: 0.5, Fixed: 3e-6, Memory: memory})
		for range 2 { // restart a simplex that has collapsed
			var y float64
			if v, y = minimize(loss, v, 0.5, 400); y < best {
				best, at = y, v
			}
		}
	}
	if at == nil {
		return GEMMParams{}, errors.New("roofline: fit: no finite loss")
	}
	q := unpack(at)
	if rest != nil {
		q.Odd = fitOdd(rest, x, q, t)
	}
	return q, nil
}

// mostOdd bounds GEMMParams.Odd.
const mostOdd = 20

// fitOdd returns the Odd that makes the loss of Fit least over samples with such
// rows, to 1%.
func fitOdd(samples []Sample, x *deviceModel, q GEMMParams, t graph.DType) float64 {
	best, at := math.Inf(1), 1.
	for q.Odd = 1; q.Odd < mostOdd; q.Odd *= 1.01 {
		x.reset(t, q)
		sum := 0.0
		for i := range samples {
			sum += math.Abs(math.Log(float64(x.cost(samples[i].op()).Seconds() / samples[i].Seconds)))
		}
		if sum < best {
			best, at = sum, q.Odd
		}
	}
	return at
}

// FitPattern returns p with the constants of the samples' class that make the loss of Fit least:
// the fraction of its bandwidth that the class reaches by its access pattern, and the ramp; from
// where p has them, Fill, the pattern's Elements, and its Wait in place of the ramp. The samples
// are of one class and are no products.
func FitPattern(samples []Sample, d *hw.Device, p Params) (Params, error) {
	if len(samples) < 10 {
		return p, fmt.Errorf("roofline: %d samples are too few to fit 2 constants", len(samples))
	}
	class := samples[0].Kind.Class()
	for i, s := range samples {
		if !(s.Seconds > 0) || !s.GEMM.IsZero() || s.Kind.Class() != class {
			return p, fmt.Errorf("roofline: sample %d (%s, %v) is no measured op of class %v", i, s.Kind, s.Seconds, class)
		}
	}
	positive := func(x float64) float64 { return math.Exp(min(x, 0)) }
	set := []func(q *Params, x float64){func(q *Params, x float64) { q.Pattern[class].Fraction = max(1/(1+math.Exp(-x)), 1e-3) }}
	start := []float64{0}
	also := func(at float64, f func(q *Params, x float64)) {
		start, set = append(start, math.Log(at)), append(set, f)
	}
	if w := p.Pattern[class].Wait; w > 0 {
		also(float64(w), func(q *Params, x float64) { q.Pattern[class].Wait = units.Seconds(positive(x)) })
	} else {
		also(2e-6, func(q *Params, x float64) { q.Ramp = units.Seconds(positive(x)) })
	}
	if p.Fill > 0 {
		also(float64(p.Fill), func(q *Params, x float64) { q.Fill = units.Seconds(positive(x)) })
	}
	if e := p.Pattern[class].Elements; e > 0 {
		also(e/mostElements, func(q *Params, x float64) { q.Pattern[class].Elements = mostElements * positive(x) })
	}
	values := func(v []float64) Params {
		q := p
		for i, f := range set {
			f(&q, v[i])
		}
		return q
	}
	of := func(v []float64) float64 {
		sum, all := 0.0, 0.0
		for i, t := range Predict(samples, d, values(v)) {
			w := samples[i].Weight
			if w == 0 {
				w = 1
			}
			sum += w * math.Abs(math.Log(float64(t/samples[i].Seconds)))
			all += w
		}
		return sum / all
	}
	v := start
	for range 3 { // restart a simplex that has collapsed
		v, _ = minimize(of, v, 0.5, 600)
	}
	return values(v), nil
}

// pack maps constants to unbounded numbers: logits of the fractions, logarithms
// of the others.
func pack(p GEMMParams) []float64 {
	logit := func(x float64) float64 { return math.Log(x / (1 - x)) }
	v := []float64{logit(p.Peak), math.Log(p.Feed), math.Log(float64(p.Ends)), logit(p.Tail), math.Log(float64(p.Fixed))}
	if p.Memory > 0 {
		v = append(v, logit(p.Memory))
	}
	return v
}

func unpack(v []float64) GEMMParams {
	fraction := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	p := GEMMParams{
		Peak: max(fraction(v[0]), 1e-3), Feed: math.Exp(min(v[1], 10)), Ends: units.Seconds(math.Exp(min(v[2], 0))),
		Tail: fraction(v[3]), Fixed: units.Seconds(math.Exp(min(v[4], 0))),
	}
	if len(v) > 5 {
		p.Memory = max(fraction(v[5]), 1e-3)
	}
	return p
}

// kendall returns tau-b of x and y, 0 where one of them is constant.
func kendall(x, y []units.Seconds) float64 {
	var concordant, tiesX, tiesY, pairs float64
	for i := range x {
		for j := range i {
			dx, dy := x[i]-x[j], y[i]-y[j]
			pairs++
			switch {
			case dx == 0 && dy == 0:
				tiesX++
				tiesY++
			case dx == 0:
				tiesX++
			case dy == 0:
				tiesY++
			case (dx > 0) == (dy > 0):
				concordant++
			default:
				concordant--
			}
		}
	}
	if d := math.Sqrt((pairs - tiesX) * (pairs - tiesY)); d > 0 {
		return concordant / d
	}
	return 0
}
