package hw

import (
	"maps"
	"slices"
	"strconv"

	"placer/units"
)

// Calibration is constants of package roofline that were fitted to measurements
// of a device. What it leaves out is that package's own.
type Calibration struct {
	Memory *MemoryConstants         `json:"memory,omitempty"`
	GEMM   map[string]GEMMConstants `json:"gemm,omitempty"` // by element type
	Source string                   `json:"source"`
}

// MemoryConstants describe kernels that memory bounds.
type MemoryConstants struct {
	// Bandwidth is the fraction of the peak that long streams reach, (0,1].
	Bandwidth float64 `json:"bandwidth"`
	// Ramp is the time in which a kernel's traffic comes up to speed.
	Ramp units.Seconds `json:"ramp"`
	// Patterns are the fractions of Bandwidth that classes of ops reach; those left
	// out reach all of it.
	Patterns map[string]float64 `json:"patterns,omitempty"`
}

// GEMMConstants describe matrix products; roofline.GEMMParams says what they mean.
type GEMMConstants struct {
	Peak  float64       `json:"peak"`
	Feed  float64       `json:"feed"`
	Ends  units.Seconds `json:"ends"`
	Tail  float64       `json:"tail"`
	Fixed units.Seconds `json:"fixed"`
}

// Classes are the keys of "patterns": the classes of ops that memory may bound.
func Classes() []string {
	return []string{"other", "elementwise", "reduction", "move", "gather", "pool", "update"}
}

// equal reports whether c and e are the same constants from the same source.
func (c *Calibration) equal(e *Calibration) bool {
	if c == nil || e == nil {
		return c == e
	}
	m, n := c.Memory, e.Memory
	same := m == n || m != nil && n != nil && m.Bandwidth == n.Bandwidth && m.Ramp == n.Ramp && maps.Equal(m.Patterns, n.Patterns)
	return same && maps.Equal(c.GEMM, e.GEMM) && c.Source == e.Source
}

// hash adds the constants of c to d.
func (c *Calibration) hash(d digest) {
	d.text("calibration")
	if m := c.Memory; m != nil {
		d.text("memory")
		d.number(m.Bandwidth)
		d.number(float64(m.Ramp))
		for _, k := range slices.Sorted(maps.Keys(m.Patterns)) {
			d.text(k)
			d.number(m.Patterns[k])
		}
	}
	d.text("gemm")
	for _, k := range slices.Sorted(maps.Keys(c.GEMM)) {
		q := c.GEMM[k]
		d.text(k)
		for _, x := range []float64{q.Peak, q.Feed, float64(q.Ends), q.Tail, float64(q.Fixed)} {
			d.number(x)
		}
	}
	d.text("end")
}

// calibration reads a calibration; nil for none.
func (f *jsonFile) calibration(v *jsonValue) (c *Calibration, err error) {
	if v == nil {
		return nil, nil
	}
	if err := f.object(v, []string{"source"}, []string{"memory", "gemm"}); err != nil {
		return nil, err
	}
	c = &Calibration{}
	if c.Source, err = f.text(v.member("source")); err != nil {
		return nil, err
	}
	if x := v.member("memory"); x != nil {
		if c.Memory, err = f.memory(x); err != nil {
			return nil, err
		}
	}
	if x := v.member("gemm"); x != nil {
		if err := f.object(x, nil, append([]string{"f32"}, elementTypes...)); err != nil {
			return nil, err
		}
		c.GEMM = map[string]GEMMConstants{}
		for _, y := range x.members {
			if c.GEMM[y.name], err = f.gemm(y.jsonValue); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func (f *jsonFile) memory(v *jsonValue) (m *MemoryConstants, err error) {
	if err := f.object(v, []string{"bandwidth", "ramp"}, []string{"patterns"}); err != nil {
		return nil, err
	}
	m = &MemoryConstants{}
	if m.Bandwidth, err = f.number(v.member("bandwidth"), 0, 1); err == nil && m.Bandwidth == 0 {
		err = f.errorAt(v.member("bandwidth").at, v.member("bandwidth").path, "is 0, want above")
	}
	if err != nil {
		return nil, err
	}
	if m.Ramp, err = f.moment(v.member("ramp")); err != nil {
		return nil, err
	}
	if x := v.member("patterns"); x != nil {
		if err := f.object(x, nil, Classes()); err != nil {
			return nil, err
		}
		m.Patterns = map[string]float64{}
		for _, y := range x.members {
			p, err := f.number(y.jsonValue, 0, 1)
			if err == nil && p == 0 {
				err = f.errorAt(y.at, y.path, "is 0, want above")
			}
			if err != nil {
				return nil, err
			}
			m.Patterns[y.name] = p
		}
	}
	return m, nil
}

func (f *jsonFile) gemm(v *jsonValue) (q GEMMConstants, err error) {
	if err := f.object(v, []string{"peak", "feed", "ends", "tail", "fixed"}, nil); err != nil {
		return q, err
	}
	if q.Peak, err = f.number(v.member("peak"), 0, 1); err == nil && q.Peak == 0 {
		err = f.errorAt(v.member("peak").at, v.member("peak").path, "is 0, want above")
	}
	if err != nil {
		return q, err
	}
	if q.Feed, err = f.number(v.member("feed"), 0, 1e6); err != nil {
		return q, err
	}
	if q.Tail, err = f.number(v.member("tail"), 0, 1); err != nil {
		return q, err
	}
	if q.Ends, err = f.moment(v.member("ends")); err != nil {
		return q, err
	}
	q.Fixed, err = f.moment(v.member("fixed"))
	return q, err
}

// number returns the number v, which must be within low and high.
func (f *jsonFile) number(v *jsonValue, low, high float64) (x float64, err error) {
	if v.kind != 'n' {
		return 0, f.errorAt(v.at, v.path, "is %s, want a number", v.describe())
	}
	if x, err = strconv.ParseFloat(v.text, 64); err != nil || !(x >= low && x <= high) {
		return 0, f.errorAt(v.at, v.path, "is %s, want %g to %g", v.describe(), low, high)
	}
	return x, nil
}

// moment returns a time below a second.
func (f *jsonFile) moment(v *jsonValue) (s units.Seconds, err error) {
	if s, err = quantity(f, v, units.ParseSeconds); err == nil && !(s >= 0 && s < 1) {
		err = f.errorAt(v.at, v.path, "is %v, want 0 to 1 s", s)
	}
	return s, err
}
