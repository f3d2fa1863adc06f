package roofline

import (
	"errors"
	"fmt"
	"maps"

	"placer/graph"
	"placer/hw"
	"placer/internal/faults"
	"placer/units"
)

// Params are the constants of one architecture.
type Params struct {
	// GEMM holds the constants by element type; types that are absent use F32's.
	GEMM map[graph.DType]GEMMParams
	// Attention holds the constants of attention in one kernel; the zero value stands for the
	// A100's.
	Attention AttentionParams
	// Bandwidth is the fraction of the peak that long streams reach, (0,1].
	Bandwidth float64
	// Products is the fraction that operands and results of products get which have no
	// GEMMParams.Memory; 0: Bandwidth.
	Products float64
	// Ramp is the time in which a kernel's memory traffic comes up to speed.
	Ramp units.Seconds
	// Fill is what comes on top of Ramp for a kernel with work for every
	// multiprocessor, and less in proportion for smaller ones: blocks are handed
	// out one after the other.
	Fill units.Seconds
	// Vector is the fraction of the f32 peak that elementwise arithmetic reaches.
	Vector float64
	// Pattern is how classes of ops go through memory.
	Pattern [graph.NumClasses]Pattern
}

// gemm returns the constants for products of type t.
func (p *Params) gemm(t graph.DType) GEMMParams {
	if q, ok := p.GEMM[t]; ok {
		return q
	}
	return p.GEMM[graph.F32]
}

// With returns a copy of p whose constants for products of type t are q.
func (p Params) With(t graph.DType, q GEMMParams) Params {
	p.GEMM = maps.Clone(p.GEMM)
	p.GEMM[t] = q
	return p
}

// Config sets what the device figures leave open.
type Config struct {
	// Bookkeeping is the time of an op that launches nothing: identity, reshape,
	// variable, constant. The framework's executor still visits it on the host; a
	// few hundred nanoseconds are what one visit of a queue costs. It must be
	// positive, so that every op advances the clock.
	Bookkeeping units.Seconds
	// TF32 lets f32 products that are not precise (graph.Op) run at the tf32 rate of
	// devices that have one, the default of most frameworks for such devices.
	TF32 bool
	// Plain is for steps that package measure runs. A product takes no less time than
	// reading its operands in full does: a convolution that runs as a plain product
	// reads an input once for every position of its kernel, more than its op's bytes
	// say. Other ops go through memory in order of addresses, so a calibration's
	// streams describe them.
	Plain bool
	// Params overrides the built-in constants and calibrations, by architecture.
	Params map[string]Params
}

// InPlace is the time of an op that holds what others read in place (graph.Facts): none,
// as far as a clock tells that must advance with every op.
const InPlace units.Seconds = 1e-12

// Default returns the settings behind every published number.
func Default() Config { return Config{Bookkeeping: 0.2e-6, TF32: true} }

// Measured returns the settings for steps that package measure runs: nothing
// visits ops that launch nothing, and convolutions are plain products.
func Measured() Config {
	c := Default()
	c.Bookkeeping, c.Plain = 1e-9, true
	return c
}

// Validate reports every fault of c.
func (c Config) Validate() error {
	var errs faults.List
	errs.If(!(c.Bookkeeping > 0 && c.Bookkeeping < 1), "bookkeeping time %v, want above 0 and below 1 s", c.Bookkeeping)
	for _, arch := range sortedKeys(c.Params) {
		if err := c.Params[arch].Validate(); err != nil {
			errs = append(errs, fmt.Errorf("constants of %s: %w", arch, err))
		}
	}
	return errors.Join(errs...)
}

// Validate reports every fault of p.
func (p Params) Validate() error {
	var errs faults.List
	fraction := func(name string, x float64) {
		errs.If(!(x > 0 && x <= 1), "%s is %g, want above 0 and at most 1", name, x)
	}
	fraction("bandwidth", p.Bandwidth)
	fraction("vector", p.Vector)
	a := p.attentionParams()
	fraction("attention forward", a.Forward)
	fraction("attention backward", a.Backward)
	errs.If(!(a.Score >= 0 && a.Score < 1e6), "attention score is %g operations, want 0 to 1e6", a.Score)
	if p.Products != 0 {
		fraction("products", p.Products)
	}
	errs.If(!(p.Ramp >= 0 && p.Ramp < 1), "ramp is %v, want 0 to 1 s", p.Ramp)
	errs.If(!(p.Fill >= 0 && p.Fill < 1), "fill is %v, want 0 to 1 s", p.Fill)
	for c, x := range p.Pattern {
		if err := x.validate(); err != nil {
			errs = append(errs, fmt.Errorf("pattern of %v: %w", graph.Class(c), err))
		}
	}
	if _, ok := p.GEMM[graph.F32]; !ok {
		errs = append(errs, errors.New("no matrix-product constants for f32"))
	}
	for _, t := range sortedKeys(p.GEMM) {
		q := p.GEMM[t]
		fraction(t.String()+" peak", q.Peak)
		if q.Memory != 0 {
			fraction(t.String()+" memory", q.Memory)
		}
		errs.If(q.Odd != 0 && !(q.Odd >= 1 && q.Odd <= 100), "%v odd is %g, want 1 to 100", t, q.Odd)
		errs.If(!(q.Feed >= 0 && q.Feed < 1e6) || !(q.Ends >= 0 && q.Ends < 1) || !(q.Fixed >= 0 && q.Fixed < 1) || !(q.Tail >= 0 && q.Tail <= 1), "%v: feed %g, ends %v or fixed %v is negative or absurd, or tail %g not within 0 and 1", t, q.Feed, q.Ends, q.Fixed, q.Tail)
	}
	return errors.Join(errs...)
}

// params returns the constants for d.
func (c *Config) params(d *hw.Device) Params {
	if p, ok := c.Params[d.Arch]; ok {
		return p
	}
	p := builtinOf(d)
	if d.Calibration != nil {
		p = p.calibrated(d.Calibration, c.Plain)
	}
	return p
}

func builtinOf(d *hw.Device) Params {
	if p, ok := builtin[d.Arch]; ok {
		return p
	}
	if d.Kind == hw.CPU {
		return builtin["avx2"]
	}
	return builtin["sm_80"]
}

// ParamsOf returns the constants that c has for d: those of c, or the built-in
// ones with what d's calibration replaces.
func (c Config) ParamsOf(d *hw.Device) Params { return c.params(d) }
