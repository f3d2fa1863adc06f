package web

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"placer/hw/bench"
	"placer/hw/gpu"
	"placer/internal/report"
	"placer/internal/words"
	"placer/units"
)

// WriteHardware writes the page of a measured host: the roofline of each card with what
// was measured on it.
func WriteHardware(w io.Writer, r *bench.Result) error {
	h := report.Hardware{Result: r}
	p := &page{Title: "Measured hardware", Verdict: []string{words.Count(len(r.Devices), "GPU", "GPUs") + " measured."}}
	charts := section{ID: "roofline", Title: "Roofline of each card", Text: []string{
		"Each dot is a matrix product that was measured, by its operations for each byte of its operands and result. The roofs are measured too: the slope is the bandwidth of the largest copy within the card, a level line the best rate of a type."}}
	for i := range r.Devices {
		d := &r.Devices[i]
		title := fmt.Sprintf("GPU %d, %s", d.Ordinal, d.Name)
		var shapes []product
		for _, x := range d.Products {
			shapes = append(shapes, product{x, intensity(&x)})
		}
		f, legend := roofline(title, float64(d.Copy), shapes)
		charts.Figures = append(charts.Figures, f)
		charts.Legend = append(charts.Legend, legend...)
	}
	p.Sections = []section{charts}
	names := []string{"cards", "matrix products", "links", "how well predictions fit"}
	tables := section{ID: "tables", Title: "Figures", Notes: r.Notes}
	for i, c := range h.Cells() {
		tables.Tables = append(tables.Tables, tableView{names[i], c, -1})
	}
	p.Sections = append(p.Sections, tables)
	p.Footer = "Measured " + r.Date + "."
	return p.write(w)
}

// product is a measured product and its operations for each byte; 0 where its type is
// not known.
type product struct {
	bench.Product
	intensity float64
}

// intensity returns the operations of a product for each byte of its two operands and
// its result, each read or written once.
func intensity(p *bench.Product) float64 {
	for t := gpu.DType(0); t < gpu.NumDTypes; t++ {
		if t.String() != p.Type {
			continue
		}
		b, m, n, k := float64(p.Batch), float64(p.M), float64(p.N), float64(p.K)
		return 2 * b * m * n * k / (b * (float64(t.Size())*(m*k+k*n) + float64(t.OutSize())*m*n))
	}
	return 0
}

// roofline draws one card.
func roofline(title string, bandwidth float64, products []product) (figure, []swatch) {
	c := newChart(1160, 400, "Roofline of "+title)
	c.right = 130
	c.x, c.y = scale{math.Inf(1), 0, true}, scale{math.Inf(1), 0, true}
	best := map[string]float64{}
	for _, p := range products {
		if p.intensity > 0 && p.Rate > 0 {
			c.x.low, c.x.high = min(c.x.low, p.intensity), max(c.x.high, p.intensity)
			c.y.low, c.y.high = min(c.y.low, p.Rate), max(c.y.high, p.Rate)
			best[p.Type] = max(best[p.Type], p.Rate)
		}
	}
	if len(best) == 0 {
		c.text("", 4, 20, "start", "no matrix product was measured")
		return figure{Title: title, SVG: c.done()}, nil
	}
	c.x.low, c.x.high, c.y.low, c.y.high = c.x.low/2, c.x.high*2, c.y.low/2, c.y.high*2
	c.axes("operations for each byte", "", func(v float64) string { return fmt.Sprintf("%g", v) }, func(v float64) string { return units.FLOPsPerSecond(v).String() })
	var legend []swatch
	for k, name := range slices.Sorted(maps.Keys(best)) {
		class, top := 1+k%colours, best[name]
		from := c.x.low
		if bandwidth > 0 {
			from = min(max(c.x.low, top/bandwidth), c.x.high)
			low := max(c.x.low, c.y.low/bandwidth)
			c.line(fmt.Sprintf("s%d", class), name+": bandwidth "+units.BytesPerSecond(bandwidth).String(), []float64{low, from}, []float64{low * bandwidth, min(top, from*bandwidth)}, false)
		}
		c.line(fmt.Sprintf("s%d", class), name+": best "+units.FLOPsPerSecond(top).String(), []float64{from, c.x.high}, []float64{top, top}, false)
		c.text("", c.width-c.right+6, c.py(top)+4, "start", name+" "+units.FLOPsPerSecond(top).String())
		legend = append(legend, swatch{fmt.Sprintf("f%d", class), title + ": " + name})
		for _, p := range products {
			if p.Type == name && p.intensity > 0 && p.Rate > 0 {
				c.dot(fmt.Sprintf("f%d", class), fmt.Sprintf("%s, %d x [%d,%d,%d]: %s, %.4g operations a byte", name, p.Batch, p.M, p.N, p.K, units.FLOPsPerSecond(p.Rate), p.intensity), p.intensity, p.Rate)
			}
		}
	}
	return figure{Title: title, SVG: c.done()}, legend
}
