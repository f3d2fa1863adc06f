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
	Memory *MemoryConstants `json:"memory,omitempty"`
	// Streams describe kernels that go through memory in order of addresses, as
	// package measure runs them; they take Memory's place there, and nowhere else.
	Streams *MemoryConstants         `json:"streams,omitempty"`
	GEMM    map[string]GEMMConstants `json:"gemm,omitempty"` // by element type
	Source  string                   `json:"source"`
	// Error is the mean of |predicted / measured - 1| over measurements that the
	// constants were not fitted to; 0 where unknown. No prediction uses it.
	Error float64 `json:"error,omitempty"`
}

// MemoryConstants describe kernels that memory bounds.
type MemoryConstants struct {
	// Bandwidth is the fraction of the peak that long streams reach, (0,1].
	Bandwidth float64 `json:"bandwidth"`
	// Ramp is the time in which a kernel's traffic comes up to speed, Fill what comes
	// on top of it where a kernel has work for every multiprocessor.
	Ramp units.Seconds `json:"ramp"`
	Fill units.Seconds `json:"fill,omitempty"`
	// Patterns are how classes of ops go through memory; those left out reach all of
	// Bandwidth.
	Patterns map[string]PatternConstants `json:"patterns,omitempty"`
}

// GEMMConstants describe matrix products; roofline.GEMMParams says what they mean.
type GEMMConstants struct {
	Peak  float64       `json:"peak"`
	Feed  float64       `json:"feed"`
	Ends  units.Seconds `json:"ends"`
	Tail  float64       `json:"tail"`
	Fixed units.Seconds `json:"fixed"`
	// Memory is the fraction of the peak bandwidth that operands and result get; 0:
	// the device's Bandwidth.
	Memory float64 `json:"memory,omitempty"`
	// Odd is how many times as long a product takes whose rows are no multiple of 16
	// bytes; 0 stands for 1.
	Odd float64 `json:"odd,omitempty"`
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
	return c.Memory.equal(e.Memory) && c.Streams.equal(e.Streams) && maps.Equal(c.GEMM, e.GEMM) && c.Source == e.Source && c.Error == e.Error
}

func (m *MemoryConstants) equal(n *MemoryConstants) bool {
	return m == n || m != nil && n != nil && m.Bandwidth == n.Bandwidth && m.Ramp == n.Ramp && m.Fill == n.Fill && maps.Equal(m.Patterns, n.Patterns)
}

// hash adds the constants of c to d.
func (c *Calibration) hash(d digest) {
	d.text("calibration")
	c.Memory.hash(d, "memory")
	c.Streams.hash(d, "streams")
	d.text("gemm")
	for _, k := range slices.Sorted(maps.Keys(c.GEMM)) {
		q := c.GEMM[k]
		d.text(k)
		for _, x := range []float64{q.Peak, q.Feed, float64(q.Ends), q.Tail, float64(q.Fixed)} {
			d.number(x)
		}
		if q.Memory > 0 {
			d.text("memory")
			d.number(q.Memory)
		}
		if q.Odd > 0 {
			d.text("odd")
			d.number(q.Odd)
		}
	}
	d.text("end")
}

// hash adds the constants of m, if there are any, to d under a name.
func (m *MemoryConstants) hash(d digest, name string) {
	if m == nil {
		return
	}
	d.text(name)
	d.number(m.Bandwidth)
	d.number(float64(m.Ramp))
	if m.Fill > 0 {
		d.text("fill")
		d.number(float64(m.Fill))
	}
	for _, k := range slices.Sorted(maps.Keys(m.Patterns)) {
		d.text(k)
		m.Patterns[k].hash(d)
	}
}

// calibration reads a calibration; nil for none.
func (f *jsonFile) calibration(v *jsonValue) *Calibration {
	if v == nil || !f.object(v, []string{"source"}, []string{"memory", "streams", "gemm", "error"}) {
		return nil
	}
	c := &Calibration{Source: f.text(v.member("source"))}
	if x := v.member("error"); x != nil {
		c.Error = f.fraction(x)
	}
	if x := v.member("memory"); x != nil {
		c.Memory = f.memory(x)
	}
	if x := v.member("streams"); x != nil {
		c.Streams = f.memory(x)
	}
	if x := v.member("gemm"); x != nil && f.object(x, nil, append([]string{"f32"}, elementTypes...)) {
		c.GEMM = map[string]GEMMConstants{}
		for _, y := range x.members {
			c.GEMM[y.name] = f.gemm(y.jsonValue)
		}
	}
	return c
}

func (f *jsonFile) memory(v *jsonValue) *MemoryConstants {
	if !f.object(v, []string{"bandwidth", "ramp"}, []string{"fill", "patterns"}) {
		return nil
	}
	m := &MemoryConstants{Bandwidth: f.fraction(v.member("bandwidth")), Ramp: f.moment(v.member("ramp"))}
	if x := v.member("fill"); x != nil {
		m.Fill = f.moment(x)
	}
	if x := v.member("patterns"); x != nil && f.object(x, nil, Classes()) {
		m.Patterns = map[string]PatternConstants{}
		for _, y := range x.members {
			m.Patterns[y.name] = f.pattern(y.jsonValue)
		}
	}
	return m
}

func (f *jsonFile) gemm(v *jsonValue) (q GEMMConstants) {
	if f.object(v, []string{"peak", "feed", "ends", "tail", "fixed"}, []string{"memory", "odd"}) {
		q.Peak = f.fraction(v.member("peak"))
		q.Feed, q.Tail = f.number(v.member("feed"), 0, 1e6), f.number(v.member("tail"), 0, 1)
		q.Ends, q.Fixed = f.moment(v.member("ends")), f.moment(v.member("fixed"))
		if x := v.member("memory"); x != nil {
			q.Memory = f.fraction(x)
		}
		if x := v.member("odd"); x != nil {
			q.Odd = f.number(x, 1, 100)
		}
	}
	return q
}

// number returns the number v, which must be within low and high.
func (f *jsonFile) number(v *jsonValue, low, high float64) float64 {
	if v.kind != 'n' {
		f.fail(v, "is %s, want a number", v.describe())
		return 0
	}
	x, err := strconv.ParseFloat(v.text, 64)
	if err != nil || !(x >= low && x <= high) {
		f.fail(v, "is %s, want %g to %g", v.describe(), low, high)
	}
	return x
}

// fraction returns a number above 0 and up to 1.
func (f *jsonFile) fraction(v *jsonValue) float64 {
	x := f.number(v, 0, 1)
	if x == 0 {
		f.fail(v, "is 0, want above")
	}
	return x
}

// moment returns a time below a second.
func (f *jsonFile) moment(v *jsonValue) units.Seconds {
	s := quantity(f, v, units.ParseSeconds)
	if !(s >= 0 && s < 1) {
		f.fail(v, "is %v, want 0 to 1 s", s)
	}
	return s
}
