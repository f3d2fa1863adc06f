package bench

import (
	"slices"

	"placer/units"
)

// stat is repeats of one measurement, of which the median counts.
type stat struct {
	Median units.Seconds `json:"median"`
	Min    units.Seconds `json:"min"`
	Max    units.Seconds `json:"max"`
	N      int           `json:"n"` // repeats
}

// Spread is the range of the repeats over their median.
func (s stat) Spread() float64 {
	if s.Median == 0 {
		return 0
	}
	return float64((s.Max - s.Min) / s.Median)
}

// over is s of one of n equal parts.
func (s stat) over(n int) stat {
	k := units.Seconds(n)
	return stat{s.Median / k, s.Min / k, s.Max / k, s.N}
}

// summarise sorts x.
func summarise(x []units.Seconds) stat {
	slices.Sort(x)
	return stat{Median: x[len(x)/2], Min: x[0], Max: x[len(x)-1], N: len(x)}
}

// point is the time of a message of some size.
type point struct {
	Bytes units.Bytes `json:"bytes"`
	stat
}

// Line is t = Latency + bytes/Bandwidth.
type Line struct {
	Latency   units.Seconds        `json:"latency"`
	Bandwidth units.BytesPerSecond `json:"bandwidth"`
	// Error is the largest |predicted/measured - 1| over the points.
	Error float64 `json:"largest_error"`
}

// fitLine returns the line of least squares of relative errors through points, of
// which there are at least two of different sizes. Where noise would make a
// constant negative, it is a billionth of a second, or the bandwidth of the
// largest point.
func fitLine(points []point) Line {
	// Minimise sum ((a + b x - t)/t)^2: weights 1/t^2.
	var w, wx, wxx, wt, wxt float64
	for _, p := range points {
		x, t := float64(p.Bytes), float64(p.Median)
		k := 1 / (t * t)
		w, wx, wxx, wt, wxt = w+k, wx+k*x, wxx+k*x*x, wt+k*t, wxt+k*x*t
	}
	det := w*wxx - wx*wx
	a, b := (wt*wxx-wx*wxt)/det, (w*wxt-wx*wt)/det
	if last := points[len(points)-1]; !(b > 0) {
		b = float64(last.Median) / float64(last.Bytes)
	}
	l := Line{Latency: units.Seconds(max(a, 1e-9)), Bandwidth: units.BytesPerSecond(1 / b)}
	for _, p := range points {
		l.Error = max(l.Error, abs(float64((l.Latency+p.Bytes.Over(l.Bandwidth))/p.Median)-1))
	}
	return l
}

func abs(x float64) float64 { return max(x, -x) }
