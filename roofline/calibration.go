package roofline

import (
	"slices"

	"placer/graph"
	"placer/hw"
)

// calibrated returns p with the constants of c in their places; plain: for kernels
// that go through memory in order.
func (p Params) calibrated(c *hw.Calibration, plain bool) Params {
	m := c.Memory
	if plain && c.Streams != nil {
		m = c.Streams
	} else if m == nil && c.Streams != nil { // a framework's kernels start as others do
		p.Ramp, p.Fill = c.Streams.Ramp, c.Streams.Fill
	}
	if m != nil {
		p.Bandwidth, p.Products, p.Ramp, p.Fill = m.Bandwidth, 0, m.Ramp, m.Fill
		clear(p.Pattern[:])
		for k := range graph.NumClasses {
			p.Pattern[k] = Pattern(m.Patterns[graph.Class(k).String()]) // 0 stands for 1
		}
	}
	for name, q := range c.GEMM {
		if t, err := graph.ParseDType(name); err == nil {
			p = p.With(t, GEMMParams(q))
		}
	}
	return p
}

// Calibration returns p as constants that a machine file holds: those of products
// of the types named, and on demand those of memory, as streams.
func (p Params) Calibration(types []graph.DType, streams bool, source string) *hw.Calibration {
	c := &hw.Calibration{Source: source}
	if streams {
		c.Streams = &hw.MemoryConstants{Bandwidth: p.Bandwidth, Ramp: p.Ramp, Fill: p.Fill}
		for k, x := range p.Pattern {
			if name := graph.Class(k).String(); x.fraction() != 1 && slices.Contains(hw.Classes(), name) {
				if c.Streams.Patterns == nil {
					c.Streams.Patterns = map[string]hw.PatternConstants{}
				}
				c.Streams.Patterns[name] = hw.PatternConstants(x)
			}
		}
	}
	for _, t := range types {
		if c.GEMM == nil {
			c.GEMM = map[string]hw.GEMMConstants{}
		}
		c.GEMM[t.String()] = hw.GEMMConstants(p.gemm(t))
	}
	return c
}
