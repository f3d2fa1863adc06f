package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"placer/graph"
	"placer/placer/strategies"
	"placer/placer/verdict"
	"placer/units"
)

// verdictFormat names the version of Verdict as a JSON document.
const verdictFormat = "placer verdict 1"

// Verdict says how many devices pay.
type Verdict struct {
	Format      string           `json:"format"`
	Graph       Graph            `json:"graph"`
	Batch       float64          `json:"batch,omitempty"` // samples a step; 0: not known
	Seed        uint64           `json:"seed"`
	Evaluations int              `json:"evaluations"`
	Seconds     float64          `json:"seconds"`
	CPUSeconds  float64          `json:"cpu_seconds"` // of the processor
	Headline    []string         `json:"headline"`
	Machines    []verdictMachine `json:"machines"`
	Rows        []verdictRow     `json:"rows"`
	Pareto      []paretoRow      `json:"pareto"`
	Divided     []dividedRow     `json:"divided,omitempty"`
	Notes       []string         `json:"notes"`
	// Assumptions are remarks on the graph's file: what it left open and what was taken.
	Assumptions []string `json:"assumptions,omitempty"`
}

// dividedRow is the best way found to divide the batch among some devices.
type dividedRow struct {
	Machine string `json:"machine"`
	Devices int    `json:"devices"`
	strategyRow
}

// undivided is the note of a verdict that knows no strategies.
const undivided = "A plan places the ops of one step: the batch is not divided among copies of the model."

// Divide adds the best way found to divide the batch of the verdict among devices of a machine, and
// says where it is the faster one.
func (v *Verdict) Divide(machine string, devices int, r *strategies.Row) {
	v.Divided = append(v.Divided, dividedRow{machine, devices, describeStrategy(r, int64(v.Batch))})
	if k := slices.Index(v.Notes, undivided); k >= 0 {
		v.Notes[k] = "Where the batch is divided, ops are kernels of their own; plans of the whole step may fuse them."
	}
}

// SayDivided adds a sentence for each machine: its fastest count with the batch divided.
func (v *Verdict) SayDivided() {
	for _, m := range v.Machines {
		var best *dividedRow
		for k := range v.Divided {
			if d := &v.Divided[k]; d.Machine == m.Name && d.Feasible && (best == nil || d.Rate > best.Rate) {
				best = d
			}
		}
		if best == nil {
			continue
		}
		placed := 0.0
		for k := range v.Rows {
			if r := &v.Rows[k]; r.Machine == m.Name {
				placed = max(placed, r.Rate)
			}
		}
		s := fmt.Sprintf("%s: with the batch divided, %d devices do %.4g samples/s by %s", m.Name, best.Devices, best.Rate, best.Strategy)
		switch {
		case placed == 0:
			s += "."
		case best.Rate > placed:
			s += fmt.Sprintf(", %.2f times the best placement of the whole step.", best.Rate/placed)
		default:
			s += ", less than the best placement of the whole step."
		}
		v.Headline = append(v.Headline, s)
	}
}

// writeDivided writes the ways to divide the batch.
func (v *Verdict) writeDivided(pg *page) {
	if len(v.Divided) == 0 {
		return
	}
	pg.prosef("\nthe batch divided among the devices, best of five ways (placer strategies: all)\n")
	t := newTable("machine", ">n", "strategy", ">step", ">samples/s", ">fullest", ">bubble")
	for _, d := range v.Divided {
		most := int64(0)
		for _, b := range d.Peak {
			most = max(most, b)
		}
		rate := "no fit"
		if d.Feasible {
			rate = fmt.Sprintf("%.4g", d.Rate)
		}
		t.row(clip(d.Machine, 10), d.Devices, d.Strategy, seconds(d.StepTime), rate, units.Bytes(most), fmt.Sprintf("%.1f%%", 100*d.Bubble))
	}
	pg.table(t.fitting("bubble"))
}

// verdictMachine is what the rows of one machine come to.
type verdictMachine struct {
	Name        string  `json:"name"`
	Hash        string  `json:"hash"`
	Devices     int     `json:"devices"`
	Error       float64 `json:"model_error"`
	ErrorSource string  `json:"model_error_source"`
	Best        int     `json:"best_devices"`   // 0: nothing fits
	Fewest      int     `json:"fewest_devices"` // within 5% of the best
	Ties        []int   `json:"tied_devices"`   // counts tied with the best
	OneEnough   bool    `json:"one_is_enough"`
}

// verdictRow is the best plan found for some devices.
type verdictRow struct {
	Key        string   `json:"key"` // in the plot
	Machine    string   `json:"machine"`
	Devices    int      `json:"devices"`
	Used       int      `json:"used"`
	Method     string   `json:"method"`
	StepTime   float64  `json:"step_time_s"`
	Feasible   bool     `json:"feasible"`
	Rate       float64  `json:"samples_per_s,omitempty"`
	Speedup    *float64 `json:"speedup"` // over one device; null where one does not fit
	Efficiency *float64 `json:"efficiency"`
	Peak       []int64  `json:"peak_bytes"`
	Memory     []int64  `json:"memory_bytes"`
	Missing    int64    `json:"missing_bytes"`          // that this plan lacks
	AtLeast    int64    `json:"missing_bytes_at_least"` // that every plan lacks
	LowerBound float64  `json:"lower_bound_s,omitempty"`
	AtPeak     float64  `json:"flops_at_peak_s"`
	Price      *float64 `json:"price_per_hour"`
	PerMillion *float64 `json:"price_per_million_samples"`
	Plan       string   `json:"plan,omitempty"` // file
	best       bool
	fewest     bool
	tied       bool
}

// paretoRow is a plan that no other beats in step, memory and devices.
type paretoRow struct {
	Machine  string  `json:"machine"`
	Devices  int     `json:"devices"`
	StepTime float64 `json:"step_time_s"`
	Memory   int64   `json:"memory_bytes"` // of the fullest device
	Method   string  `json:"method"`
}

// Judge describes the answers for g on ms, of batch samples a step (0: not known). plans
// are the files of their plans, if they were written.
func Judge(g *graph.Graph, batch float64, ms []verdict.Machine, answers []verdict.Answer, plans []string) *Verdict {
	v := &Verdict{Format: verdictFormat, Graph: IdentifyGraph(g), Batch: batch}
	for k := range answers {
		a := &answers[k]
		r := verdictRow{Key: key(k), Machine: ms[a.Machine].Name, Devices: a.Devices, Used: a.Used, Method: a.Method, StepTime: a.Score.Value, Feasible: a.Score.Feasible(),
			Missing: int64(a.Score.Overflow), AtLeast: int64(a.AtLeast), LowerBound: a.Bound, AtPeak: float64(a.AtPeak)}
		if k < len(plans) {
			r.Plan = plans[k]
		}
		if batch > 0 && r.Feasible {
			r.Rate = a.Rate(batch)
		}
		for d, b := range a.Peak {
			r.Peak, r.Memory = append(r.Peak, int64(b)), append(r.Memory, int64(a.On.Devices[d].Memory))
		}
		if price, ok := ms[a.Machine].Hour(a.Devices); ok {
			r.Price = &price
			if batch > 0 && r.Feasible {
				cost := a.PerMillion(batch, price)
				r.PerMillion = &cost
			}
		}
		v.Evaluations += a.Evaluations
		v.Rows = append(v.Rows, r)
	}
	for m := range ms {
		v.machine(ms, answers, m)
	}
	v.cheapest()
	for _, p := range verdict.Pareto(answers) {
		v.Pareto = append(v.Pareto, paretoRow{ms[p.Machine].Name, p.Devices, p.Step, int64(p.Memory), p.Method})
	}
	for m := range ms {
		if s := arithmetic(g, &ms[m]); s != "" {
			v.Notes = append(v.Notes, s)
		}
	}
	if batch == 0 && slices.ContainsFunc(v.Rows, func(r verdictRow) bool { return r.Price != nil }) {
		v.Notes = append(v.Notes, "The price of a million samples is left out: nothing says how many samples a step has; --batch N does.")
	}
	v.Notes = append(v.Notes, undivided)
	if slices.ContainsFunc(answers, func(a verdict.Answer) bool { return !a.Score.Feasible() }) {
		v.Notes = append(v.Notes, "What does not fit may with activations recomputed or kept on the host: placer fit tries that.")
	}
	return v
}

// arithmetic says in what element types g computes on the first device of x, and at which
// peak rates; types of less than a hundredth are left out.
func arithmetic(g *graph.Graph, x *verdict.Machine) string {
	d, total := &x.Devices[0], float64(g.FLOPs())
	tf32, fast := d.Peak[graph.TF32.String()]
	var parts []string
	for _, a := range verdict.ArithmeticOf(g, d) {
		share := float64(a.FLOPs) / total
		if share < 0.01 {
			break
		}
		s := fmt.Sprintf("%.0f%% in %v, %v", 100*share, a.Type, a.Peak)
		if fast && float64(a.Precise) > 0.01*total {
			s += fmt.Sprintf(" (products that ask for all bits of f32; tf32 has %v)", tf32)
		}
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("FLOPs on %s, with the peak rate of %s: %s.", x.Name, d.Model, strings.Join(parts, "; "))
}

// Leave notes for which counts of devices there was no time.
func (v *Verdict) Leave(ms []verdict.Machine, left []verdict.Left) {
	for m := range ms {
		var counts []string
		for _, x := range left {
			if x.Machine == m {
				counts = append(counts, fmt.Sprint(x.Devices))
			}
		}
		if len(counts) > 0 {
			v.Notes = append(v.Notes, fmt.Sprintf("%s: the time was over before %s devices: --budget and --counts say how much there is, and for what.", ms[m].Name, strings.Join(counts, ", ")))
		}
	}
}

// key is the letter of row k in the plot.
func key(k int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return letters[k%len(letters) : k%len(letters)+1]
}

// machine adds what the answers for machine m come to.
func (v *Verdict) machine(ms []verdict.Machine, answers []verdict.Answer, m int) {
	x := &ms[m]
	c := verdict.Conclude(answers, m, x.Error)
	doc := verdictMachine{Name: x.Name, Hash: x.Hash(), Devices: x.NumDevices(), Error: x.Error.Share, ErrorSource: x.Error.Source, Ties: []int{}, OneEnough: c.Enough}
	if c.Best >= 0 {
		doc.Best, doc.Fewest = answers[c.Best].Devices, answers[c.Fewest].Devices
		v.Rows[c.Best].best, v.Rows[c.Fewest].fewest = true, true
	}
	for _, k := range c.Ties {
		doc.Ties = append(doc.Ties, answers[k].Devices)
		v.Rows[k].tied = true
	}
	if c.One >= 0 {
		for k := range answers {
			if a := &answers[k]; a.Machine == m && a.Score.Feasible() {
				speedup, efficiency := answers[c.One].Score.Value/a.Score.Value, a.Efficiency(&answers[c.One])
				v.Rows[k].Speedup, v.Rows[k].Efficiency = &speedup, &efficiency
			}
		}
	}
	v.Machines = append(v.Machines, doc)
	v.say(x, answers, c)
	for k := range answers {
		if a := &answers[k]; a.Machine == m && !a.Score.Feasible() {
			v.lack(x, a)
		}
	}
}

// say adds the sentences of a machine.
func (v *Verdict) say(x *verdict.Machine, answers []verdict.Answer, c verdict.Conclusion) {
	add := func(format string, a ...any) { v.Headline = append(v.Headline, fmt.Sprintf(format, a...)) }
	if c.Best < 0 {
		add("%s: no plan was found that fits.", x.Name)
		return
	}
	best, fewest := &answers[c.Best], &answers[c.Fewest]
	rate := func(a *verdict.Answer) string {
		if v.Batch > 0 {
			return fmt.Sprintf("%.4g samples/s", a.Rate(v.Batch))
		}
		return fmt.Sprintf("%.4g steps/s", 1/a.Score.Value)
	}
	faster := func(a *verdict.Answer) float64 { return 100 * (a.Score.Value/best.Score.Value - 1) }
	most := 0
	for k := range answers {
		if answers[k].On != nil && answers[k].Machine == best.Machine {
			most = max(most, answers[k].Devices)
		}
	}
	over := func(a *verdict.Answer) string {
		if c.One < 0 || a.Devices == 1 {
			return ""
		}
		one := &answers[c.One]
		return fmt.Sprintf(", %.2f times one %s (%s)", one.Score.Value/a.Score.Value, one.Kind(), rate(one))
	}
	switch {
	case c.Enough && most == 1:
		add("%s: one %s does %s; no other count was asked for.", x.Name, best.Kind(), rate(best))
	case c.Enough && c.Best == c.One:
		add("%s: one %s is enough: %s, and no plan found for up to %d is faster.", x.Name, best.Kind(), rate(best), most)
	case c.Enough:
		one := &answers[c.One]
		add("%s: one %s is enough: %s; %s are %.1f%% faster.", x.Name, one.Kind(), rate(one), count(best), faster(one))
	case c.Fewest != c.Best:
		add("%s: %s are enough: %s%s; %s are %.1f%% faster.", x.Name, count(fewest), rate(fewest), over(fewest), count(best), faster(fewest))
	default:
		add("%s: %s are the best: %s%s.", x.Name, count(best), rate(best), over(best))
	}
	if len(c.Ties) > 0 {
		tied := []int{best.Devices}
		for _, k := range c.Ties {
			tied = append(tied, answers[k].Devices)
		}
		slices.Sort(tied)
		words := make([]string, len(tied))
		for k, n := range tied {
			words[k] = fmt.Sprint(n)
		}
		last := len(words) - 1
		add("%s: %s and %s devices are a tie: their steps differ by no more than the model's error, %.1f%%.", x.Name, strings.Join(words[:last], ", "), words[last], 100*x.Error.Share)
	}
}

// lack adds what a plan for some devices lacks.
func (v *Verdict) lack(x *verdict.Machine, a *verdict.Answer) {
	s := fmt.Sprintf("%s: %s not fit: the best plan lacks %v (%d bytes)", x.Name, countDoes(a), a.Score.Overflow, int64(a.Score.Overflow))
	if a.AtLeast > 0 {
		s += fmt.Sprintf(", any plan at least %v", a.AtLeast)
	}
	v.Headline = append(v.Headline, s+".")
}

func count(a *verdict.Answer) string {
	if a.Devices == 1 {
		return "1 " + a.Kind()
	}
	return fmt.Sprintf("%d %ss", a.Devices, a.Kind())
}

func countDoes(a *verdict.Answer) string {
	if a.Devices == 1 {
		return count(a) + " does"
	}
	return count(a) + " do"
}

// cheapest says which row costs least, where prices are known.
func (v *Verdict) cheapest() {
	var best *verdictRow
	for k := range v.Rows {
		if r := &v.Rows[k]; r.PerMillion != nil && (best == nil || *r.PerMillion < *best.PerMillion) {
			best = r
		}
	}
	if best != nil {
		v.Headline = append(v.Headline, fmt.Sprintf("Cheapest: %d x %s, %s a million samples.", best.Devices, best.Machine, money(*best.PerMillion)))
	}
}

func money(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

// WriteText writes v: sentences first, then tables.
func (v *Verdict) WriteText(w io.Writer) error {
	pg := newPage(w)
	for _, s := range v.Headline {
		pg.prose(s)
	}
	batch := ""
	if v.Batch > 0 {
		batch = fmt.Sprintf(", %g samples a step", v.Batch)
	}
	pg.prosef("\n%s: %d ops%s\n", v.Graph.Name, v.Graph.Ops, batch)
	v.writeRows(pg)
	pg.printf("\n")
	v.writeBeside(pg)
	v.writePareto(pg)
	v.writeDivided(pg)
	pg.printf("\n")
	for _, m := range v.Machines {
		pg.prose(fmt.Sprintf("model's error on %s: %.1f%% (%s).", m.Name, 100*m.Error, m.ErrorSource))
	}
	for _, n := range v.Notes {
		pg.prose(n)
	}
	return pg.err
}

// writeRows writes the answers.
func (v *Verdict) writeRows(pg *page) {
	rate, priced := ">samples/s", false
	if v.Batch == 0 {
		rate = ">steps/s"
	}
	for _, r := range v.Rows {
		priced = priced || r.PerMillion != nil
	}
	t := newTable("", "machine", ">n", ">step", rate, ">effic.", ">memory", ">full")
	if priced {
		t.column(">cost/M")
	}
	t.column("")
	for _, r := range v.Rows {
		fullest, share := r.fullest()
		mark := ""
		switch {
		case r.best:
			mark = "best"
		case r.fewest:
			mark = "enough"
		case r.tied:
			mark = "tie"
		}
		if r.fewest && r.best {
			mark = "best"
		}
		if r.Used < r.Devices && r.Feasible {
			mark = strings.TrimSpace(fmt.Sprintf("%s uses %d", mark, r.Used))
		}
		cells := []any{r.Key, clip(r.Machine, 10), r.Devices, "-", "-", "-", units.Bytes(fullest), fmt.Sprintf("%.0f%%", 100*share)}
		if r.Feasible {
			per := r.Rate
			if v.Batch == 0 {
				per = 1 / r.StepTime
			}
			cells[3], cells[4] = seconds(r.StepTime), fmt.Sprintf("%.4g", per)
			if r.Efficiency != nil {
				cells[5] = fmt.Sprintf("%.0f%%", 100**r.Efficiency)
			}
		} else {
			mark = "no fit"
		}
		if priced {
			cells = append(cells, orDash(r.PerMillion, money))
		}
		t.row(append(cells, mark)...)
	}
	pg.table(t)
}

// fullest returns the peak of the device with the largest share of its memory in use,
// and that share.
func (r *verdictRow) fullest() (peak int64, share float64) {
	for d, b := range r.Peak {
		if x := float64(b) / float64(r.Memory[d]); x > share {
			peak, share = b, x
		}
	}
	return peak, share
}

// writeBeside writes what to check the answers by.
func (v *Verdict) writeBeside(pg *page) {
	pg.prosef("beside it: no plan is shorter than the bound; FLOPs at peak is arithmetic alone\n")
	t := newTable("", ">step", ">proven bound", ">above", ">FLOPs at peak", ">of peak", ">missing")
	for _, r := range v.Rows {
		step, bound, above, of, missing := "-", "-", "-", "-", "-"
		if r.LowerBound > 0 {
			bound = seconds(r.LowerBound).String()
		}
		if r.Feasible {
			step, of = seconds(r.StepTime).String(), percent(r.AtPeak, r.StepTime)
			if r.LowerBound > 0 {
				above = percentOf(r.StepTime/r.LowerBound - 1)
			}
		} else {
			missing = units.Bytes(r.Missing).String()
		}
		t.row(r.Key, step, bound, above, seconds(r.AtPeak), of, missing)
	}
	pg.table(t)
}

// longestFront is how many plans of the front the text form shows.
const longestFront = 12

// writePareto writes the plans that no other beats, and plots the rows.
func (v *Verdict) writePareto(pg *page) {
	if len(v.Pareto) == 0 {
		return
	}
	pg.prosef("\nplans that no other found beats in devices used, step and memory\n")
	t := newTable(">devices", "machine", ">step", ">memory", "method")
	for _, p := range v.Pareto[:min(len(v.Pareto), longestFront)] {
		t.row(p.Devices, clip(p.Machine, 24), seconds(p.StepTime), units.Bytes(p.Memory), p.Method)
	}
	pg.table(t)
	if n := len(v.Pareto) - longestFront; n > 0 {
		pg.printf("and %d more, --json has them\n", n)
	}
	var ps []mark
	for _, r := range v.Rows {
		if r.Feasible {
			peak, _ := r.fullest()
			ps = append(ps, mark{r.Key, float64(peak), r.StepTime})
		}
	}
	if len(ps) > 1 {
		pg.printf("\n")
		plot(pg, ps, "memory of the fullest device", "step", func(x float64) string { return units.Bytes(x).String() }, func(y float64) string { return seconds(y).String() })
	}
}

// clip shortens s to n characters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "~"
	}
	return s
}
