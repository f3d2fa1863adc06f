package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"placer/graph"
	"placer/hw"
	"placer/roofline"
	"placer/units"
)

// fit is how well the roofline predicts one class of ops on one device, and the
// constants that do it best.
type fit struct {
	Device int    `json:"device"`
	Class  string `json:"class"` // "gemm bf16", "elementwise"
	// Before are the errors of the built-in constants, After those of the fitted
	// ones, Unseen those of constants fitted to the other two thirds of the samples.
	Before Errors  `json:"before"`
	After  Errors  `json:"after"`
	Unseen *Errors `json:"unseen,omitempty"`
	// GEMM are the constants of products, Stream those of streams.
	GEMM   *roofline.GEMMParams `json:"gemm,omitempty"`
	Stream *streamParams        `json:"stream,omitempty"`
}

// streamParams are the constants of kernels that read and write in order.
type streamParams struct {
	// Bandwidth is the fraction of the peak that is reached.
	Bandwidth float64       `json:"bandwidth"`
	Ramp      units.Seconds `json:"ramp"`
	Fill      units.Seconds `json:"fill"`
}

// Where the fits of Memory and Fill start: constants that the built-in ones do not have.
const (
	startMemory = 0.7
	startFill   = 1e-6
)

// Errors is roofline.Report as it is written to files.
type Errors struct {
	Samples int     `json:"samples"`
	MAPE    float64 `json:"mape"`
	P95     float64 `json:"p95"`
	Kendall float64 `json:"kendall_tau"`
}

// Calibrate fits the roofline to what was measured on every device, kernels as
// nodes of a graph, and fills
// r.Fits. Classes with fewer than ten samples are left out.
func (r *Result) Calibrate() error {
	r.Fits = nil
	for i := range r.Devices {
		x := &r.Devices[i]
		d := x.device()
		// The samples are kernels in a graph: of a short one what is left without the
		// node is little and noise, of which no relative error is made.
		d.Launch, d.GraphLaunch = x.Node.Median, 0
		builtin := roofline.Default().ParamsOf(&d)
		memory, err := r.streams(x, &d, builtin)
		if err != nil {
			return err
		}
		// Products are fitted beside the bandwidth that they are predicted with.
		fitted := withStreams(builtin, memory)
		for _, t := range []graph.DType{graph.F32, graph.TF32, graph.F16, graph.BF16, graph.F64, graph.F8} {
			samples := x.samples(t)
			if len(samples) < 3*10 {
				continue
			}
			d := d
			if t == graph.F32 { // measured as f32: the model would take the tf32 rate
				d.Peak = maps.Clone(d.Peak)
				delete(d.Peak, graph.TF32.String())
			}
			start := fitted.GEMM[t]
			start.Memory = startMemory
			fitted := fitted.With(t, start)
			q, err := roofline.Fit(samples, &d, fitted, t)
			if err != nil {
				return fmt.Errorf("GPU %d: %v products: %w", x.Ordinal, t, err)
			}
			unseen, err := roofline.CrossValidate(samples, &d, fitted, t)
			if err != nil {
				return fmt.Errorf("GPU %d: %v products: %w", x.Ordinal, t, err)
			}
			u := Errors(unseen)
			r.Fits = append(r.Fits, fit{Device: x.Ordinal, Class: "gemm " + t.String(), GEMM: &q, Unseen: &u,
				Before: Errors(roofline.Evaluate(samples, &d, builtin)), After: Errors(roofline.Evaluate(samples, &d, fitted.With(t, q)))})
		}
		r.Fits = append(r.Fits, memory...)
	}
	return nil
}

// streams fits the bandwidth and the ramp of kernels that go through memory in
// order: those that read and write, for elementwise ops, and those that read, for
// reductions.
func (r *Result) streams(x *device, d *hw.Device, builtin roofline.Params) (fits []fit, err error) {
	for _, c := range []struct {
		class  graph.Class
		kind   graph.Kind
		points []point
	}{{graph.ClassElementwise, "Add", x.Streams}, {graph.ClassReduction, "Sum", x.Reads}} {
		var samples []roofline.Sample
		for _, p := range c.points {
			samples = append(samples, roofline.Sample{Kind: c.kind, Bytes: p.Bytes, Seconds: p.Median + x.Node.Median})
		}
		if len(samples) < 10 {
			continue
		}
		whole := builtin
		whole.Bandwidth, whole.Fill, whole.Pattern[c.class] = 1, startFill, roofline.Pattern{}
		fitted, err := roofline.FitPattern(samples, d, whole)
		if err != nil {
			return nil, fmt.Errorf("GPU %d: %v: %w", x.Ordinal, c.class, err)
		}
		fits = append(fits, fit{Device: x.Ordinal, Class: c.class.String(), Stream: &streamParams{fitted.Pattern[c.class].Fraction, fitted.Ramp, fitted.Fill},
			Before: Errors(roofline.Evaluate(samples, d, builtin)), After: Errors(roofline.Evaluate(samples, d, fitted))})
	}
	return fits, nil
}

// withStreams returns p with the memory constants that fits of streams and reads
// have found. Every class of ops that memory bounds goes through it in order of
// addresses where steps are measured, so all have the bandwidth of streams,
// reductions that of kernels which read.
func withStreams(p roofline.Params, fits []fit) roofline.Params {
	var stream, read *streamParams
	for i := range fits {
		switch fits[i].Class {
		case graph.ClassElementwise.String():
			stream = fits[i].Stream
		case graph.ClassReduction.String():
			read = fits[i].Stream
		}
	}
	if stream == nil {
		return p
	}
	p.Bandwidth, p.Ramp, p.Fill = stream.Bandwidth, stream.Ramp, stream.Fill
	if read != nil {
		p.Bandwidth = max(p.Bandwidth, read.Bandwidth)
	}
	for k := range graph.NumClasses {
		p.Pattern[k] = roofline.Pattern{} // products: all of the bandwidth
		if slices.Contains(hw.Classes(), graph.Class(k).String()) {
			p.Pattern[k].Fraction = stream.Bandwidth / p.Bandwidth
		}
	}
	if read != nil {
		p.Pattern[graph.ClassReduction].Fraction = read.Bandwidth / p.Bandwidth
	}
	return p
}

// calibration returns the constants fitted to device x, as a machine file holds
// them; nil where there are none.
func (r *Result) calibration(x *device) *hw.Calibration {
	d := x.device()
	p := roofline.Default().ParamsOf(&d)
	var types []graph.DType
	var memory []fit
	streams, worst := false, 0.0
	for i := range r.Fits {
		f := &r.Fits[i]
		switch {
		case f.Device != x.Ordinal:
		case f.GEMM != nil:
			if t, err := graph.ParseDType(strings.TrimPrefix(f.Class, "gemm ")); err == nil {
				p = p.With(t, *f.GEMM)
				types = append(types, t)
			}
			if f.Unseen != nil {
				worst = max(worst, f.Unseen.MAPE)
			}
		default:
			memory = append(memory, *f)
			streams = streams || f.Class == graph.ClassElementwise.String()
		}
	}
	if !streams && types == nil {
		return nil
	}
	p = withStreams(p, memory)
	c := p.Calibration(types, streams, fmt.Sprintf("fitted by placer bench hw to %d products, %d streams and %d reads", len(x.Products), len(x.Streams), len(x.Reads)))
	c.Error = min(worst, 1)
	return c
}

// samples returns the measured products of type t for the roofline.
func (x *device) samples(t graph.DType) (samples []roofline.Sample) {
	out := t.Size()
	if t == graph.F8 {
		out = 2
	}
	for _, p := range x.Products {
		if p.Type != t.String() || !(p.Median > 0) {
			continue
		}
		m := graph.GEMM{Batch: int64(p.Batch), M: int64(p.M), N: int64(p.N), K: int64(p.K)}
		samples = append(samples, roofline.Sample{Kind: "MatMul", DType: t, GEMM: m, Seconds: p.Median + x.Node.Median,
			Bytes: units.Bytes(m.Batch * (t.Size()*(m.M*m.K+m.K*m.N) + out*m.M*m.N))})
	}
	return samples
}
