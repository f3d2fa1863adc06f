package roofline

import (
	"slices"

	"placer/graph"
	"placer/hw"
)

// calibrated returns p with the constants of c in their places.
func (p Params) calibrated(c *hw.Calibration) Params {
	if m := c.Memory; m != nil {
		p.Bandwidth, p.Ramp = m.Bandwidth, m.Ramp
		clear(p.Pattern[:])
		for k := range graph.NumClasses {
			p.Pattern[k] = m.Patterns[graph.Class(k).String()] // 0 stands for 1
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
// of the types named, and those of memory on demand.
func (p Params) Calibration(types []graph.DType, memory bool, source string) *hw.Calibration {
	c := &hw.Calibration{Source: source}
	if memory {
		c.Memory = &hw.MemoryConstants{Bandwidth: p.Bandwidth, Ramp: p.Ramp}
		for k, x := range p.Pattern {
			if name := graph.Class(k).String(); x != 0 && x != 1 && slices.Contains(hw.Classes(), name) {
				if c.Memory.Patterns == nil {
					c.Memory.Patterns = map[string]float64{}
				}
				c.Memory.Patterns[name] = x
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
