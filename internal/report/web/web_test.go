package web

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"html"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"placer/baselines/rules"
	"placer/internal/report"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// expert returns the human expert's step of a workload on p100s, as a search's result.
func expert(t testing.TB, workload string, gpus int) *Plan {
	t.Helper()
	return step(t, workload, gpus, func(p *problem.Problem) []uint8 { return rules.ExpertDevices(&p.Problem) })
}

// step returns the step of a placement, as the result of a search of one method.
func step(t testing.TB, workload string, gpus int, place func(*problem.Problem) []uint8) *Plan {
	t.Helper()
	p, err := problem.Workload(workload, "p100", gpus, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := &plan.Plan{Method: "human", Decision: plan.Decision{Device: place(p), Priority: p.Priority}}
	r, err := p.Simulator.Run(found, sim.Options{Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	x := &Plan{Graph: p.Graph, Machine: p.Machine, Result: r, Bound: p.Bound,
		Simulation: report.Simulate(p.Graph, p.Machine, found, r, &sim.Bound{Seconds: units.Seconds(p.Bound)}, nil)}
	row := report.Row{Method: "human", Kind: plan.Baseline, StepTime: float64(r.Makespan), FIFO: float64(r.Makespan), Feasible: true, LowerBound: p.Bound, Evaluations: 1}
	gap, none := float64(r.Makespan)/p.Bound-1, 0.0
	row.Gap, row.Reduction = &gap, &none
	for _, b := range r.PeakBytes {
		row.Peak = append(row.Peak, int64(b))
	}
	x.Search = &report.Search{Format: report.SearchFormat, Graph: report.IdentifyGraph(p.Graph), Machine: report.IdentifyMachine(p.Machine), Budget: report.Budget{Seconds: 10}, Seed: 1,
		Granularity: "chain", Scheduler: "critical-path", LowerBound: p.Bound, Best: row, Rows: []report.Row{row}, Skipped: []report.Skip{{Method: "metis", Kind: plan.Baseline, Reason: `not <there> & "gone"`}}, Seconds: 9.5, Evaluations: 1}
	x.Curves = []Curve{{"human", plan.Baseline, []Point{{0.5, 1, float64(r.Makespan)}}}, {"anneal", plan.Search, []Point{{1, 10, 2 * float64(r.Makespan)}, {9, 400, float64(r.Makespan)}}}}
	return x
}

// data is a payload as a page has it, read again.
type data struct {
	header
	times, sizes, memory []float64
	items, ops           []uint32
	kinds                []uint8
	names                []string
}

// payloads reads the payloads of a page.
func payloads(t *testing.T, page string) (all []data) {
	t.Helper()
	for _, m := range regexp.MustCompile(`<script type="text/plain" id="[^"]*-data">([^<]*)</script>`).FindAllStringSubmatch(page, -1) {
		packed, err := base64.RawURLEncoding.DecodeString(m[1])
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		var d data
		n := int(binary.LittleEndian.Uint32(b))
		if err := json.Unmarshal(b[4:4+n], &d.header); err != nil {
			t.Fatal(err)
		}
		b = b[(4+n+7)/8*8:]
		floats := func(n int) (xs []float64) {
			for ; n > 0; n-- {
				xs, b = append(xs, math.Float64frombits(binary.LittleEndian.Uint64(b))), b[8:]
			}
			return xs
		}
		ints := func(n int) (xs []uint32) {
			for ; n > 0; n-- {
				xs, b = append(xs, binary.LittleEndian.Uint32(b)), b[4:]
			}
			return xs
		}
		samples, items := 0, 0
		for _, m := range d.Memory {
			samples += m.Samples
		}
		for _, k := range d.Tracks {
			items += k.Items
		}
		d.times, d.sizes, d.memory = floats(2*d.Spans), floats(d.Spans), floats(2*samples)
		d.items, d.ops = ints(items), ints(d.Spans)
		d.kinds, b = b[:4*d.Spans], b[4*d.Spans:]
		d.names = strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		all = append(all, d)
	}
	return all
}

// write returns the page that f writes.
func write(t testing.TB, f func(io.Writer) error) string {
	t.Helper()
	var b strings.Builder
	if err := f(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSameNumbers: what the page draws is what the documents say, bit for bit: the spans
// of each device and link sum to the time it is busy, the last ends with the step, the
// largest sample of memory is the peak; and the page carries both documents whole.
func TestSameNumbers(t *testing.T) {
	x := expert(t, "rnnlm:layers=2,unroll=3", 2)
	text := write(t, func(w io.Writer) error { return WriteSearch(w, x) })
	d := payloads(t, text)[0]
	equal := func(what string, a, b any) {
		t.Helper()
		p, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		q, err := json.Marshal(b)
		if err != nil || !bytes.Equal(p, q) {
			t.Errorf("%s: the page has %s, want %s (%v)", what, p, q, err)
		}
	}
	short := *x.Simulation
	short.CriticalPath = nil
	equal("search", d.Search, x.Search)
	equal("simulation", d.Simulation, &short)
	if len(d.names) != x.Graph.NumOps() || d.names[7] != x.Graph.Op(7).Name {
		t.Errorf("%d names, of which the eighth is %q", len(d.names), d.names[7])
	}

	last, at := 0.0, 0
	critical := 0
	for _, tr := range d.Tracks {
		busy, until := 0.0, 0.0
		for _, i := range d.items[at : at+tr.Items] {
			start, end := d.times[2*i], d.times[2*i+1]
			if tr.Device >= 0 {
				busy += end - start
			} else if end > until {
				busy += end - max(start, until)
				until = end
			}
			last = max(last, end)
		}
		at += tr.Items
		want := 0.0
		for _, u := range x.Simulation.Devices {
			if u.Name == tr.Name {
				want = u.Busy
			}
		}
		for _, u := range x.Simulation.Links {
			if u.Name == tr.Name {
				want = u.Busy
			}
		}
		if want == 0 || math.Abs(busy-want) > 1e-9*want {
			t.Errorf("%s: spans of %g s, the document says %g", tr.Name, busy, want)
		}
	}
	if last != x.Simulation.StepTime || d.StepTime != x.Search.Best.StepTime {
		t.Errorf("the last span ends at %g, the step takes %g, the result says %g", last, d.StepTime, x.Search.Best.StepTime)
	}
	for i := range d.ops {
		if d.kinds[4*i+1]&spanCritical != 0 {
			critical++
		}
	}
	if critical != len(x.Result.CriticalPath) {
		t.Errorf("%d spans are critical, the path has %d steps", critical, len(x.Result.CriticalPath))
	}
	at = 0
	for k, m := range d.Memory {
		peak := 0.0
		for i := at; i < at+m.Samples; i++ {
			peak = max(peak, d.memory[2*i+1])
		}
		at += m.Samples
		if int64(peak) != x.Search.Best.Peak[k] || m.Peak != x.Search.Best.Peak[k] || m.Limit != x.Simulation.Devices[k].Memory {
			t.Errorf("device %d: samples to %g and a peak of %d bytes of %d, the documents say %d of %d", k, peak, m.Peak, m.Limit, x.Search.Best.Peak[k], x.Simulation.Devices[k].Memory)
		}
	}
}

// cellsOf returns the cells of all tables of a page, row by row.
func cellsOf(page string) (rows [][]string) {
	tag := regexp.MustCompile(`<[^>]*>`)
	for _, row := range regexp.MustCompile(`(?s)<tr[ >].*?</tr>`).FindAllString(page, -1) {
		var cells []string
		for _, m := range regexp.MustCompile(`(?s)<(?:td|th)[ >].*?</(?:td|th)>`).FindAllString(row, -1) {
			cells = append(cells, html.UnescapeString(tag.ReplaceAllString(m, "")))
		}
		rows = append(rows, cells)
	}
	return rows
}

// TestTablesAreThoseOfTheTerminal: the tables of the page, which need no script, have
// every cell that the terminal's have.
func TestTablesAreThoseOfTheTerminal(t *testing.T) {
	x := expert(t, "rnnlm:layers=2,unroll=3", 2)
	rows := cellsOf(write(t, func(w io.Writer) error { return WriteSearch(w, x) }))
	for _, want := range [][][]string{x.Search.Cells().Rows, x.Simulation.DeviceCells().Rows, x.Simulation.LinkCells().Rows} {
		for _, row := range want {
			if !slices.ContainsFunc(rows, func(r []string) bool { return slices.Equal(r, row) }) {
				t.Errorf("the page lacks the row %q", row)
			}
		}
	}
}

// TestPageIsClosed: a page names no host, escapes what graphs and methods are called, and
// is the same each time it is written.
func TestPageIsClosed(t *testing.T) {
	x := expert(t, "rnnlm:layers=2,unroll=3", 2)
	page := write(t, func(w io.Writer) error { return WriteSearch(w, x) })
	shown := strings.ReplaceAll(page, "http://www.w3.org/2000/svg", "") // a name, not an address
	for _, bad := range []string{"http:", "https:", "src=", "@import", "url(", "<there>", "ZgotmplZ"} {
		if strings.Contains(shown, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(page, "not &lt;there&gt; &amp; &#34;gone&#34;") {
		t.Error("the reason of a skipped method is not on the page")
	}
	if again := write(t, func(w io.Writer) error { return WriteSearch(w, x) }); again != page {
		t.Error("two pages of one run differ")
	}
}

// TestJoin: spans that are too many are joined, and rows keep their first start, their
// last end and no less time than before.
func TestJoin(t *testing.T) {
	x := expert(t, "rnnlm:layers=2,unroll=3", 2)
	p, whole := newPayload(x, findGroups(x.Graph), nil), newPayload(x, findGroups(x.Graph), nil)
	const most = 200
	p.join(most)
	if p.header.Spans > most || p.header.Spans == 0 || !(p.header.Joined > 0) || p.header.Spans != len(p.ops) || len(p.times) != 2*len(p.ops) || len(p.kinds) != 4*len(p.ops) {
		t.Fatalf("%d spans, pauses of %g s", p.header.Spans, p.header.Joined)
	}
	ends := func(p *payload, k int) (first, last, busy, sizes float64) {
		at := 0
		for _, t := range p.header.Tracks[:k] {
			at += t.Items
		}
		first = math.Inf(1)
		for _, i := range p.items[at : at+p.header.Tracks[k].Items] {
			first, last, busy, sizes = min(first, p.times[2*i]), max(last, p.times[2*i+1]), busy+p.times[2*i+1]-p.times[2*i], sizes+p.sizes[i]
		}
		return first, last, busy, sizes
	}
	for k := range p.header.Tracks {
		f1, l1, b1, s1 := ends(p, k)
		f0, l0, b0, s0 := ends(whole, k)
		if f1 != f0 || l1 != l0 || b1 < b0*(1-1e-12) || s1 != s0 {
			t.Errorf("%s: from %g to %g, %g s, size %g; want %g, %g, at least %g, %g", p.header.Tracks[k].Name, f1, l1, b1, s1, f0, l0, b0, s0)
		}
	}
}

// TestHeat: the shares of a row sum to one, and the times to what the devices compute.
func TestHeat(t *testing.T) {
	x := expert(t, "rnnlm:layers=2,unroll=3", 2)
	h := newHeat(x, findGroups(x.Graph))
	if h.Word != "layer" || len(h.Rows) < 2 || len(h.Devices) != 2 {
		t.Fatalf("%d rows of %s on %d devices", len(h.Rows), h.Word, len(h.Devices))
	}
	for _, r := range h.Rows {
		sum := 0
		for _, c := range r.Shares {
			sum += c.Percent
		}
		if sum < 99 || sum > 101 {
			t.Errorf("%s: %d%%", r.Name, sum)
		}
	}
}

// TestVerdict: the sentences say what the rows do.
func TestVerdict(t *testing.T) {
	gap := 0.1
	s := &report.Search{Machine: report.Machine{Devices: 2}, LowerBound: 0.01, Best: report.Row{Method: "anneal", StepTime: 0.011, Feasible: true, Gap: &gap},
		OneDevice: &report.Reference{Value: 0.022, Feasible: true, Reduction: 0.5}, BestRule: &report.Reference{Method: "etf", Value: 0.0121, Feasible: true, Reduction: 1 - 1/1.1}}
	for _, c := range []struct {
		used   int
		change func()
		want   string
	}{
		{2, func() {}, "takes 11 ms a step on 2 devices."},
		{2, func() {}, "factor of 2.00"},
		{2, func() {}, "etf, comes to 12.1 ms, of which the best plan saves 9.1%"},
		{2, func() {}, "below 10 ms, which is proven; this one is 10.0% above it"},
		{1, func() {}, "on 1 of 2 devices"},
		{2, func() { s.OneDevice.Value, s.OneDevice.Reduction = 0.011, 0 }, "not worth it"},
		{2, func() { s.OneDevice.Feasible = false }, "No plan on one device fits"},
		{2, func() { s.Best.Feasible, s.Best.Overflow = false, 3e9 }, "3.00 GB more memory"},
	} {
		c.change()
		if got := strings.Join(verdict(s, c.used), " "); !strings.Contains(got, c.want) {
			t.Errorf("%q lacks %q", got, c.want)
		}
	}
}
