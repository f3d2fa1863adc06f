package report

import (
	"fmt"
	"slices"
	"strings"

	"placer/graph"
	"placer/placer/verdict"
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
	// Interrupted says that the search was stopped before its time was over.
	Interrupted bool `json:"interrupted"`
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
	Left        []int   `json:"left_devices"` // counts that there was no time for
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

// Judge describes the answers for g on ms, of batch samples a step (0: not known); left are the
// counts without one. plans are the files of their plans, if they were written.
func Judge(g *graph.Graph, batch float64, ms []verdict.Machine, answers []verdict.Answer, left []verdict.Left, plans []string) *Verdict {
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
		v.machine(ms, answers, left, m)
	}
	v.cheapest()
	for _, p := range verdict.Pareto(answers) {
		v.Pareto = append(v.Pareto, paretoRow{ms[p.Machine].Name, p.Devices, p.Step, int64(p.Memory), p.Method})
	}
	for m := range ms {
		if s := taken(ms[m].Machine); s != "" {
			v.Notes = append(v.Notes, s)
		}
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

// Leave notes for which counts of devices there was no time, or which an interruption left.
func (v *Verdict) Leave(interrupted bool) {
	v.Interrupted = interrupted
	for k := range v.Machines {
		m := &v.Machines[k]
		counts := strings.Trim(strings.ReplaceAll(fmt.Sprint(m.Left), " ", ", "), "[]")
		switch {
		case len(m.Left) == 0:
		case interrupted:
			v.Notes = append(v.Notes, fmt.Sprintf("%s: interrupted before %s devices.", m.Name, counts))
		default:
			v.Notes = append(v.Notes, fmt.Sprintf("%s: the time was over before %s devices: --budget and --counts say how much there is, and for what.", m.Name, counts))
		}
	}
}

// key is the letter of row k in the plot.
func key(k int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return letters[k%len(letters) : k%len(letters)+1]
}

// machine adds what the answers for machine m come to.
func (v *Verdict) machine(ms []verdict.Machine, answers []verdict.Answer, left []verdict.Left, m int) {
	x := &ms[m]
	c := verdict.Conclude(answers, m, x.Error)
	doc := verdictMachine{Name: x.Name, Hash: x.Hash(), Devices: x.NumDevices(), Error: x.Error.Share, ErrorSource: x.Error.Source, Ties: []int{}, OneEnough: c.Enough, Left: []int{}}
	for _, l := range left {
		if l.Machine == m {
			doc.Left = append(doc.Left, l.Devices)
		}
	}
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
	most := 0 // devices of an answer
	for k := range answers {
		if answers[k].Machine == m {
			most = max(most, answers[k].Devices)
		}
	}
	if most == 1 && len(doc.Left) > 0 { // nobody knows
		doc.OneEnough = false
	}
	v.Machines = append(v.Machines, doc)
	v.say(x, answers, c, most, len(doc.Left) > 0)
	for k := range answers {
		if a := &answers[k]; a.Machine == m && !a.Score.Feasible() {
			v.lack(x, a)
		}
	}
}
