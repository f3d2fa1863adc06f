// Command replan loses each of 8 devices of several plans in turn, and sets a changed plan that
// moves few bytes beside a search from nothing with as many evaluations, a line of a JSONL
// file each; what has a line is left out. See README.md beside it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"placer/graph"
	"placer/hw"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/placer/replan"
	"placer/placer/search"
	"placer/plan"
	"placer/units"
	"placer/workloads"
)

const gpus = 8

// row is one device lost.
type row struct {
	Workload    string  `json:"workload"`
	GPU         string  `json:"gpu"`
	Lost        int     `json:"lost"`
	Evaluations int     `json:"evaluations"`
	Seed        uint64  `json:"seed"`
	Whole       float64 `json:"step_on_8_s"`
	Fresh       float64 `json:"fresh_step_s"`
	FreshFits   bool    `json:"fresh_fits"`
	Kept        float64 `json:"kept_step_s"` // nothing but what is lost moves
	KeptFits    bool    `json:"kept_fits"`
	Step        float64 `json:"step_s"` // of the changed plan
	Fits        bool    `json:"fits"`
	Held        int64   `json:"held_bytes"`
	FreshMoved  int64   `json:"fresh_moved_bytes"`
	Forced      int64   `json:"forced_bytes"`
	// Limit is a quarter of what fresh moves; where more is forced, that and a quarter of the
	// rest of what fresh moves.
	Limit int64 `json:"limit_bytes"`
	Moved int64 `json:"moved_bytes"`
}

// within says that the changed plan is at most 3% longer than the one from nothing.
func (r *row) within() bool { return r.Fits && (!r.FreshFits || r.Step <= 1.03*r.Fresh) }

// beside is by how much the changed plan is longer than the one from nothing, as a share,
// infinite where it does not fit; ok is false where that one does not.
func (r *row) beside() (share float64, ok bool) {
	if r.FreshFits && !r.Fits {
		return math.Inf(1), true
	}
	return r.Step/r.Fresh - 1, r.FreshFits
}

// possible says that what was on the lost device, which every plan loads again, is at most a
// quarter of what the plan from nothing moves.
func (r *row) possible() bool { return 4*r.Forced <= r.FreshMoved }

// few says that at most a quarter of what the plan from nothing moves has moved.
func (r *row) few() bool { return 4*r.Moved <= r.FreshMoved }

func main() {
	out := flag.String("o", "experiments/replan/rows.jsonl", "lines")
	names := flag.String("rows", "trfxl8@p100 rnnlm8@p100 vit:layers=24,hidden=1024,heads=16,ffn=4096,attention=products@a100 llama:layers=16,attention=products@a100 moe:attention=products@a100 gnmt8@p100", "workloads and machines")
	evaluations := flag.Int("evaluations", 2000, "evaluations of each search")
	seed := flag.Uint64("seed", 1, "seed")
	flag.Parse()
	if err := run(*out, strings.Fields(*names), *evaluations, *seed, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "replan:", err)
		os.Exit(1)
	}
}

// run makes the rows that out lacks and prints the table of those with as many evaluations and
// this seed. left is what stands behind the flags.
func run(out string, names []string, evaluations int, seed uint64, left []string) error {
	if len(left) > 0 {
		return fmt.Errorf("%q: want flags alone", left)
	}
	rows, err := read(out)
	if err != nil {
		return err
	}
	for _, wanted := range names {
		name, on, ok := strings.Cut(wanted, "@")
		if !ok {
			return fmt.Errorf("%s: want a workload and a machine, as gnmt8@p100", wanted)
		}
		var missing []int
		for lost := range gpus {
			if !slices.ContainsFunc(rows, func(r row) bool {
				return r.Workload == name && r.GPU == on && r.Lost == lost && r.Evaluations == evaluations && r.Seed == seed
			}) {
				missing = append(missing, lost)
			}
		}
		if len(missing) == 0 {
			continue
		}
		more, err := lose(row{Workload: name, GPU: on, Evaluations: evaluations, Seed: seed}, missing, out)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		rows = append(rows, more...)
	}
	table(os.Stdout, of(rows, evaluations, seed))
	return nil
}

// of returns the rows of so many evaluations and a seed.
func of(rows []row, evaluations int, seed uint64) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.Evaluations != evaluations || r.Seed != seed })
}

func read(path string) (rows []row, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		var r row
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		rows = append(rows, r)
	}
	return rows, s.Err()
}

// lose searches on all devices, and then on those left by each of missing.
func lose(r row, missing []int, out string) (rows []row, err error) {
	g, err := workloads.Build(r.Workload)
	if err != nil {
		return nil, err
	}
	m, err := hw.Take(r.GPU, gpus, false)
	if err != nil {
		return nil, err
	}
	whole, err := problem.New(problem.Source{Graph: g}, m, problem.Options{})
	if err != nil {
		return nil, err
	}
	old, score, err := find(whole, r.Evaluations, r.Seed)
	if err != nil {
		return nil, err
	}
	r.Whole = score.Value
	var last fresh
	for _, lost := range missing {
		x := r
		x.Lost = lost
		if err := x.change(whole, m, old, &last); err != nil {
			return nil, err
		}
		line, err := json.Marshal(x)
		if err != nil {
			return nil, err
		}
		f, err := os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(append(line, '\n')); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "%s\n", line)
		rows = append(rows, x)
	}
	return rows, nil
}

// fresh is a search from nothing on what is left of a machine. Where another device is lost and
// the rest is alike, it is the same.
type fresh struct {
	on     *hw.Machine
	device []uint8
	score  plan.Score
}

func alike(a, b *hw.Machine) bool {
	links := func(a, b hw.Link) bool { a.Name, b.Name = "", ""; return a == b }
	return slices.EqualFunc(a.Devices, b.Devices, func(a, b hw.Device) bool { return a.SameFigures(&b) }) &&
		slices.EqualFunc(a.Links, b.Links, links) && slices.EqualFunc(a.Routes, b.Routes, slices.Equal)
}

// change loses a device of the plan old on m.
func (r *row) change(whole *problem.Problem, m *hw.Machine, old []uint8, last *fresh) error {
	var keep []int
	to := make([]uint8, gpus)
	for d := range gpus {
		if to[d] = replan.Lost; d != r.Lost {
			to[d] = uint8(len(keep))
			keep = append(keep, d)
		}
	}
	before := make([]uint8, len(old))
	for i, d := range old {
		before[i] = to[d]
	}
	p, err := whole.On(m.Keep(keep))
	if err != nil {
		return err
	}
	if last.on == nil || !alike(last.on, p.Machine) {
		last.on = p.Machine
		if last.device, last.score, err = find(p, r.Evaluations, r.Seed); err != nil {
			return err
		}
	}
	r.Fresh, r.FreshFits = last.score.Value, last.score.Feasible()
	var forced units.Bytes
	for i, d := range before {
		b := p.Graph.Op(graph.OpID(i)).Resident
		if d == replan.Lost {
			forced += b
		}
		if d != last.device[i] {
			r.FreshMoved += int64(b)
		}
	}
	r.Forced, r.Limit = int64(forced), r.FreshMoved/4
	if !r.possible() {
		r.Limit = r.Forced + (r.FreshMoved-r.Forced)/4
	}
	p.Budget, p.Seed = plan.Budget{Evaluations: r.Evaluations}, r.Seed
	o, err := replan.Find(context.Background(), p, before, units.Bytes(r.Limit))
	if err != nil {
		return err
	}
	r.Kept, r.KeptFits, r.Step, r.Fits = o.Kept.Value, o.Kept.Feasible(), o.Score.Value, o.Score.Feasible()
	r.Held, r.Forced, r.Moved = int64(o.Held), int64(o.Forced), int64(o.Moved)
	return nil
}

// find searches p from nothing.
func find(p *problem.Problem, evaluations int, seed uint64) ([]uint8, plan.Score, error) {
	use := []string{"human", "single", "listsched", "heft-units", "etf-units", "local", "anneal", "polish"}
	how := methods.Options{Level: methods.Default().Level, Workers: 2}
	ms := slices.DeleteFunc(methods.ForSearch(methods.Of(p), how), func(m search.Method) bool { return !slices.Contains(use, m.Name) })
	c := search.Default()
	c.Budget, c.Seed, c.Workers = plan.Budget{Evaluations: evaluations}, seed, 2
	none := func() float64 { return 0 }
	found, err := search.Search(context.Background(), p, ms, c, search.Host{Clock: none, CPU: none})
	if err != nil {
		return nil, plan.Score{}, err
	}
	best := &found.Rows[found.Best]
	return best.Device, best.Score, nil
}

// table prints what the rows of each workload on each machine come to.
func table(w io.Writer, rows []row) {
	fmt.Fprintln(w, "| workload | on | devices lost | a quarter is possible | of these within 3% | and at most a quarter moved | step beside a search from nothing, worst, mean | others | within 3% | worst |")
	fmt.Fprintln(w, "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	type searched struct{ workload, gpu string }
	var all []searched
	for _, r := range rows {
		if x := (searched{r.Workload, r.GPU}); !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	for _, x := range all {
		var n, within, few [2]int // 0: a quarter is possible
		var longer [2]shares
		for k := range rows {
			r := &rows[k]
			if r.Workload != x.workload || r.GPU != x.gpu {
				continue
			}
			side := 1
			if r.possible() {
				side = 0
			}
			n[side]++
			if r.within() {
				within[side]++
			}
			if r.few() {
				few[side]++
			}
			if share, ok := r.beside(); ok {
				longer[side] = append(longer[side], share)
			}
		}
		fmt.Fprintf(w, "| %s | %s | %d | %d | %d | %d | %s, %s | %d | %d | %s |\n", x.workload, x.gpu, n[0]+n[1], n[0], within[0], few[0], longer[0].worst(), longer[0].mean(), n[1], within[1], longer[1].worst())
	}
}

// shares are by how much steps are longer than others.
type shares []float64

func (s shares) worst() string {
	if len(s) == 0 {
		return "-"
	}
	return percent(slices.Max(s))
}

func (s shares) mean() string {
	if len(s) == 0 {
		return "-"
	}
	sum := 0.0
	for _, x := range s {
		sum += x
	}
	return percent(sum / float64(len(s)))
}

func percent(share float64) string {
	if math.IsInf(share, 1) {
		return "does not fit"
	}
	return fmt.Sprintf("%+.1f%%", 100*share)
}
