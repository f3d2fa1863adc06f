package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"placer/hw/bench"
	"placer/units"
)

// Hardware is a measured host.
type Hardware struct{ *bench.Result }

// WriteText writes h as tables.
func (h Hardware) WriteText(w io.Writer) error {
	pg := newPage(w)
	pg.printf("CUDA %s, cuBLAS %s", version(h.CUDA, 1000, 10), version(h.BLAS, 10000, 100))
	if h.Driver != "" {
		pg.printf(", driver %s", h.Driver)
	}
	if h.Date != "" {
		pg.printf(", %s", h.Date)
	}
	pg.printf("\n\n")
	tables := h.tables()
	for i, t := range tables {
		if i > 0 {
			pg.printf("\n")
		}
		pg.table(t)
	}
	for i := range h.Devices {
		if x := h.Devices[i].Throttled(); len(x) > 0 {
			pg.printf("GPU %d: the clock was held down during %s\n", h.Devices[i].Ordinal, strings.Join(x, ", "))
		}
	}
	pg.notes("", h.Notes...)
	return pg.err
}

// tables are those of the cards, products, links and, where there are any, fits.
func (h Hardware) tables() []*table {
	t := newTable("GPU", "name", ">SMs", ">clock", ">memory", ">L2", ">copy", ">launch", ">in a graph", ">with wait", ">to GPU", ">from GPU")
	for i := range h.Devices {
		d := &h.Devices[i]
		t.row(d.Ordinal, d.Name, d.SMs, fmt.Sprintf("%d MHz", d.ClockMHz), d.Memory, fmt.Sprintf("%.1f MB", float64(d.L2)/1e6), rate(float64(d.Copy)),
			d.Launch.Median, d.Node.Median, d.Round.Median, rate(float64(d.HostToGPU.Bandwidth)), rate(float64(d.GPUToHost.Bandwidth)))
	}
	tables := []*table{t, h.products(), h.links()}
	if len(h.Fits) > 0 {
		tables = append(tables, h.fits())
	}
	return tables
}

// version prints v, a version of CUDA or cuBLAS.
func version(v, major, minor int) string {
	if v == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d", v/major, v%major/minor)
}

// products writes the best rate of each type and its widest spread.
func (h Hardware) products() *table {
	t := newTable("GPU", "products of", ">best", "at [M,N,K]", ">median over all", ">shapes", ">widest spread")
	for i := range h.Devices {
		d := &h.Devices[i]
		byType := map[string][]bench.Product{}
		for _, p := range d.Products {
			byType[p.Type] = append(byType[p.Type], p)
		}
		for _, k := range slices.Sorted(maps.Keys(byType)) {
			ps := byType[k]
			rates := make([]float64, len(ps))
			best, spread := ps[0], 0.0
			for j, p := range ps {
				rates[j] = p.Rate
				spread = max(spread, p.Spread())
				if p.Rate > best.Rate {
					best = p
				}
			}
			slices.Sort(rates)
			t.row(d.Ordinal, k, units.FLOPsPerSecond(best.Rate), fmt.Sprintf("%d x [%d,%d,%d]", best.Batch, best.M, best.N, best.K),
				units.FLOPsPerSecond(rates[len(rates)/2]), len(ps), percent(spread, 1))
		}
	}
	return t
}

// links writes the lines t = latency + bytes/bandwidth of everything that moves
// data.
func (h Hardware) links() *table {
	t := newTable("from", "to", "how", ">latency", ">bandwidth", ">line within")
	row := func(from, to, how string, l bench.Line) {
		t.row(from, to, how, l.Latency, rate(float64(l.Bandwidth)), percent(l.Error, 1))
	}
	for i := range h.Devices {
		d := &h.Devices[i]
		name := fmt.Sprintf("gpu:%d", d.Ordinal)
		row("host", name, "pinned memory", d.HostToGPU)
		row(name, "host", "pinned memory", d.GPUToHost)
		row(name, name, "copy", d.Copies)
	}
	for _, l := range h.Links {
		how := "direct"
		if !l.Direct {
			how = "through the host"
		}
		row(fmt.Sprintf("gpu:%d", l.From), fmt.Sprintf("gpu:%d", l.To), how, l.Line)
	}
	return t
}

// fits writes how well the roofline predicts what was measured.
func (h Hardware) fits() *table {
	t := newTable("GPU", "ops", "constants", ">samples", ">mean error", ">p95", ">tau")
	for _, f := range h.Fits {
		row := func(constants string, e bench.Errors) {
			t.row(f.Device, f.Class, constants, e.Samples, percent(e.MAPE, 1), percent(e.P95, 1), fmt.Sprintf("%.2f", e.Kendall))
		}
		row("built in", f.Before)
		row("fitted", f.After)
		if f.Unseen != nil {
			row("fitted, unseen shapes", *f.Unseen)
		}
	}
	return t
}
