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
	fmt.Fprintf(w, "CUDA %s, cuBLAS %s", version(h.CUDA, 1000, 10), version(h.BLAS, 10000, 100))
	if h.Driver != "" {
		fmt.Fprintf(w, ", driver %s", h.Driver)
	}
	if h.Date != "" {
		fmt.Fprintf(w, ", %s", h.Date)
	}
	fmt.Fprint(w, "\n\n")
	t := newTable("GPU", "name", "SMs", "clock", "memory", "L2", "copy", "launch", "in a graph", "with wait", "to GPU", "from GPU")
	t.right(2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	for i := range h.Devices {
		d := &h.Devices[i]
		t.row(fmt.Sprint(d.Ordinal), d.Name, fmt.Sprint(d.SMs), fmt.Sprintf("%d MHz", d.ClockMHz), d.Memory.String(), fmt.Sprintf("%.1f MB", float64(d.L2)/1e6), rate(float64(d.Copy)),
			d.Launch.Median.String(), d.Node.Median.String(), d.Round.Median.String(), rate(float64(d.HostToGPU.Bandwidth)), rate(float64(d.GPUToHost.Bandwidth)))
	}
	if err := t.write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := h.products(w); err != nil {
		return err
	}
	if err := h.links(w); err != nil {
		return err
	}
	if err := h.fits(w); err != nil {
		return err
	}
	for i := range h.Devices {
		if x := h.Devices[i].Throttled(); len(x) > 0 {
			fmt.Fprintf(w, "GPU %d: the clock was held down during %s\n", h.Devices[i].Ordinal, strings.Join(x, ", "))
		}
	}
	for _, n := range h.Notes {
		fmt.Fprintln(w, n)
	}
	return nil
}

// version prints v, a version of CUDA or cuBLAS.
func version(v, major, minor int) string {
	if v == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d", v/major, v%major/minor)
}

// products writes the best rate of each type and its widest spread.
func (h Hardware) products(w io.Writer) error {
	t := newTable("GPU", "products of", "best", "at [M,N,K]", "median over all", "shapes", "widest spread")
	t.right(2, 4, 5, 6)
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
			t.row(fmt.Sprint(d.Ordinal), k, units.FLOPsPerSecond(best.Rate).String(), fmt.Sprintf("%d x [%d,%d,%d]", best.Batch, best.M, best.N, best.K),
				units.FLOPsPerSecond(rates[len(rates)/2]).String(), fmt.Sprint(len(ps)), percent(spread, 1))
		}
	}
	return t.write(w)
}

// links writes the lines t = latency + bytes/bandwidth of everything that moves
// data.
func (h Hardware) links(w io.Writer) error {
	fmt.Fprintln(w)
	t := newTable("from", "to", "how", "latency", "bandwidth", "line within")
	t.right(3, 4, 5)
	row := func(from, to, how string, l bench.Line) {
		t.row(from, to, how, l.Latency.String(), rate(float64(l.Bandwidth)), percent(l.Error, 1))
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
	return t.write(w)
}

// fits writes how well the roofline predicts what was measured.
func (h Hardware) fits(w io.Writer) error {
	if len(h.Fits) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := newTable("GPU", "ops", "constants", "samples", "mean error", "p95", "tau")
	t.right(3, 4, 5, 6)
	for _, f := range h.Fits {
		row := func(constants string, e bench.Errors) {
			t.row(fmt.Sprint(f.Device), f.Class, constants, fmt.Sprint(e.Samples), percent(e.MAPE, 1), percent(e.P95, 1), fmt.Sprintf("%.2f", e.Kendall))
		}
		row("built in", f.Before)
		row("fitted", f.After)
		if f.Unseen != nil {
			row("fitted, unseen shapes", *f.Unseen)
		}
	}
	return t.write(w)
}
