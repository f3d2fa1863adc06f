package roofline

import (
	"errors"
	"fmt"

	"placer/graph"
	"placer/hw"
	"placer/units"
)

// GEMMParams are the constants of the matrix-product model of one architecture
// and element type. See Product for their use.
type GEMMParams struct {
	Peak  float64       // fraction of the peak rate that a large product reaches, (0,1]
	Feed  float64       // operand cost of small tiles, in elements: a tile of [a,b] runs at 1/(1+Feed*(1/a+1/b))
	K0    float64       // depth at which half of a tile's time goes into starting and ending it
	Fixed units.Seconds // kernel time of an empty product
}

// Params are the constants of one architecture.
type Params struct {
	// GEMM holds the constants by element type; types that are absent use F32's.
	GEMM map[graph.DType]GEMMParams
	// Bandwidth is the fraction of the peak that long streams reach, (0,1].
	Bandwidth float64
	// Ramp is the time in which a kernel's memory traffic comes up to speed.
	Ramp units.Seconds
	// Vector is the fraction of the f32 peak that elementwise arithmetic reaches.
	Vector float64
	// Pattern is the fraction of Bandwidth that a class of ops reaches by its
	// access pattern; 0 stands for 1.
	Pattern [graph.NumClasses]float64
}

// gemm returns the constants for products of type t.
func (p *Params) gemm(t graph.DType) GEMMParams {
	if q, ok := p.GEMM[t]; ok {
		return q
	}
	return p.GEMM[graph.F32]
}

// Config sets what the device figures leave open.
type Config struct {
	// Bookkeeping is the time of an op that launches nothing: identity, reshape,
	// variable, constant. The framework's executor still visits it on the host; a
	// few hundred nanoseconds are what one visit of a queue costs. It must be
	// positive, so that every op advances the clock.
	Bookkeeping units.Seconds
	// TF32 lets f32 products run at the tf32 rate of devices that have one, the
	// frameworks' default for such devices.
	TF32 bool
	// Params overrides the built-in constants, by architecture.
	Params map[string]Params
}

// Default returns the settings behind every published number.
func Default() Config { return Config{Bookkeeping: 0.2e-6, TF32: true} }

// Validate reports every fault of c.
func (c Config) Validate() error {
	var errs []error
	if !(c.Bookkeeping > 0) {
		errs = append(errs, fmt.Errorf("bookkeeping time %v, want above zero", c.Bookkeeping))
	}
	for _, arch := range sortedKeys(c.Params) {
		if err := c.Params[arch].Validate(); err != nil {
			errs = append(errs, fmt.Errorf("constants of %s: %w", arch, err))
		}
	}
	return errors.Join(errs...)
}

// Validate reports every fault of p.
func (p Params) Validate() error {
	var errs []error
	fraction := func(name string, x float64) {
		if !(x > 0 && x <= 1) {
			errs = append(errs, fmt.Errorf("%s is %g, want above 0 and at most 1", name, x))
		}
	}
	fraction("bandwidth", p.Bandwidth)
	fraction("vector", p.Vector)
	if !(p.Ramp >= 0) {
		errs = append(errs, fmt.Errorf("ramp is %v, want not negative", p.Ramp))
	}
	for c, x := range p.Pattern {
		if x != 0 {
			fraction("pattern of "+graph.Class(c).String(), x)
		}
	}
	if _, ok := p.GEMM[graph.F32]; !ok {
		errs = append(errs, errors.New("no matrix-product constants for f32"))
	}
	for _, t := range sortedKeys(p.GEMM) {
		q := p.GEMM[t]
		fraction(t.String()+" peak", q.Peak)
		if !(q.Feed >= 0) || !(q.K0 >= 0) || !(q.Fixed >= 0) {
			errs = append(errs, fmt.Errorf("%v: feed %g, k0 %g and fixed %v must not be negative", t, q.Feed, q.K0, q.Fixed))
		}
	}
	return errors.Join(errs...)
}

// params returns the constants for d.
func (c *Config) params(d *hw.Device) Params {
	if p, ok := c.Params[d.Arch]; ok {
		return p
	}
	if p, ok := builtin[d.Arch]; ok {
		return p
	}
	if d.Kind == hw.CPU {
		return builtin["avx2"]
	}
	return builtin["sm_80"]
}

// builtin are the constants by architecture.
var builtin = map[string]Params{
	"sm_60": gpu(GEMMParams{Peak: 0.90, Feed: 8, K0: 32, Fixed: 3e-6}, nil),
	"sm_70": gpu(GEMMParams{Peak: 0.90, Feed: 8, K0: 32, Fixed: 3e-6}, nil),
	"sm_80": gpu(GEMMParams{Peak: 0.85, Feed: 16, K0: 64, Fixed: 3e-6}, nil),
	"sm_90": gpu(GEMMParams{Peak: 0.80, Feed: 16, K0: 64, Fixed: 3e-6}, nil),
	"avx2": {
		GEMM:      map[graph.DType]GEMMParams{graph.F32: {Peak: 0.80, Feed: 2, K0: 16, Fixed: 2e-6}},
		Bandwidth: 0.80, Ramp: 1e-6, Vector: 0.5,
		Pattern: patterns,
	},
}

// patterns: rows named by indices come in short pieces; reductions and copies
// with permuted axes write or read across lines now and then.
var patterns = [graph.NumClasses]float64{graph.ClassGather: 0.5, graph.ClassReduction: 0.8, graph.ClassMove: 0.8, graph.ClassPool: 0.8}

func gpu(f32 GEMMParams, others map[graph.DType]GEMMParams) Params {
	m := map[graph.DType]GEMMParams{graph.F32: f32}
	for t, q := range others {
		m[t] = q
	}
	return Params{GEMM: m, Bandwidth: 0.85, Ramp: 1e-6, Vector: 0.5, Pattern: patterns}
}
