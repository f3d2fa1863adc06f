package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"placer/hw"
	"placer/internal/fsx"
	"placer/internal/jsonx"
	"placer/internal/report"
	"placer/internal/words"
	"placer/placer/search"
	"placer/placer/strategies"
	"placer/placer/verdict"
	"placer/plan"
)

// verdictRun is a verdict under way.
type verdictRun struct {
	*console
	flags    *verdictFlags
	loaded   loaded
	machines []verdict.Machine
	batch    float64           // samples of a step; 0 where nothing says
	family   strategies.Family // the step of any batch; nil where it is not divided
	answers  []verdict.Answer
	left     []verdict.Left
	doc      *report.Verdict
}

func (c *console) verdict(ctx context.Context, f *verdictFlags) error {
	r := &verdictRun{console: c, flags: f}
	if err := r.prepare(); err != nil {
		return err
	}
	if err := r.sweep(ctx); err != nil {
		return err
	}
	if err := r.conclude(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return interrupted("interrupted: counts that were left are not in the table")
	}
	if !slices.ContainsFunc(r.answers, func(a verdict.Answer) bool { return a.Score.Feasible() }) {
		return tooMuch(r.answers[len(r.answers)-1].Score)
	}
	return nil
}

// prepare loads what the flags name and finds out whether it can be answered for.
func (r *verdictRun) prepare() (err error) {
	f := r.flags
	r.loaded, err = r.loadGraph(&f.graphFlags)
	if err == nil && f.resize(r.loaded) {
		r.loaded, err = r.loadGraph(&f.graphFlags)
	}
	if err != nil {
		return err
	}
	r.tell(r.loaded)
	r.assumeState(r.loaded.Graph, &f.graphFlags)
	if r.machines, err = r.judged(f, r.loaded); err != nil {
		return err
	}
	most := slices.MaxFunc(r.machines, func(a, b verdict.Machine) int { return a.NumDevices() - b.NumDevices() })
	if n := len(f.counts); n > 0 && f.counts[n-1] > most.NumDevices() {
		return usagef("--counts %d: machine %s has %s, and no other that is named has more; %s", f.counts[n-1], most.Name, words.Count(most.NumDevices(), "device", "devices"), hw.OfMore)
	}
	if n := len(f.counts); n > 0 && f.counts[n-1] > hw.MaxPlaced {
		return usagef("--counts %d: an answer places single ops, on at most %d devices; 'placer strategies --gpus %d' divides a step among more", f.counts[n-1], hw.MaxPlaced, f.counts[n-1])
	}
	if r.batch, err = f.samples(r.loaded); err != nil {
		return usage(err)
	}
	if f.out != "" {
		if err := emptyFolder(f.out); err != nil {
			return err
		}
	}
	r.family = r.divisible(&f.graphFlags, r.loaded, r.batch)
	return nil
}

// emptyFolder makes the folder dir, which must not hold anything yet.
func emptyFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty: name another folder", dir)
	}
	return os.MkdirAll(dir, 0o755)
}

// sweep finds the answers. Where the batch can be divided, a share of the time is left for
// that.
func (r *verdictRun) sweep(ctx context.Context) (err error) {
	f := r.flags
	how := verdict.Config{Counts: f.counts, Budget: plan.Budget{Seconds: f.budget.Seconds()}, Seed: f.seed, Workers: f.workers}
	if r.family != nil {
		how.Budget.Seconds *= 1 - dividedShare
	}
	if f.evaluations > 0 {
		how.Budget = plan.Budget{Evaluations: f.evaluations}
	}
	host := verdict.Host{Host: search.Host{Clock: r.clock, CPU: r.cpu}, Tell: func(a *verdict.Answer) {
		found := fmt.Sprintf("%v missing", a.Score.Overflow)
		if a.Score.Feasible() {
			found = fmt.Sprintf("%.4g ms by %s", 1e3*a.Score.Value, a.Method)
		}
		r.say("%d of %s: %s", a.Devices, r.machines[a.Machine].Name, found)
	}}
	r.answers, r.left, err = verdict.Sweep(ctx, r.loaded.Source, r.machines, how, host)
	return err
}

// conclude writes and prints what the answers come to.
func (r *verdictRun) conclude(ctx context.Context) error {
	plans, unwritten := r.writeAnswers() // which costs nothing of what is printed
	doc := report.Judge(r.loaded.Graph, r.batch, r.machines, r.answers, r.left, plans)
	r.doc = doc
	doc.Leave(ctx.Err() != nil)
	if r.family != nil {
		r.divide(ctx)
	}
	doc.Assumptions = r.loaded.assumptions
	doc.Seed, doc.Seconds, doc.CPUSeconds = r.flags.seed, r.clock(), r.cpu()
	if out := r.flags.out; out != "" && unwritten == nil {
		unwritten = fsx.WriteFile(filepath.Join(out, "verdict.json"), func(w io.Writer) error { return jsonx.Write(w, doc) })
		if unwritten == nil {
			r.say("plans and machines in %s", out)
		}
	}
	return errors.Join(unwritten, r.print(r.flags.json, doc))
}

// writeAnswers writes the plan and the machine of every answer into the folder, if there
// is one, and returns the plans' names.
func (r *verdictRun) writeAnswers() (names []string, err error) {
	dir := r.flags.out
	if dir == "" {
		return nil, nil
	}
	prefix := fileNames(r.machines)
	for k := range r.answers {
		a := &r.answers[k]
		name := fmt.Sprintf("%s-%d", prefix[a.Machine], a.Devices)
		p := &plan.Plan{Graph: r.loaded.Hash(), Machine: a.On.Name, Method: a.Method, Decision: a.Decision}
		file, err := p.File(r.loaded.Graph, a.On)
		if err != nil {
			return nil, err
		}
		if err := fsx.WriteFile(filepath.Join(dir, name+".plan.json"), file.Write); err != nil {
			return nil, err
		}
		if err := fsx.WriteFile(filepath.Join(dir, name+".machine.json"), a.On.Write); err != nil {
			return nil, err
		}
		names = append(names, name+".plan.json")
	}
	return names, nil
}

// fileNames returns what the names of each machine's files begin with: its own name, numbered
// where that of another is the same in letters that file names have.
func fileNames(ms []verdict.Machine) (names []string) {
	for k := range ms {
		name := fileName(ms[k].Name)
		for n := 2; slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s.%d", fileName(ms[k].Name), n)
		}
		names = append(names, name)
	}
	return names
}

// dividedShare is the part of a verdict's time that goes to strategies, which divide the
// batch among the devices.
const dividedShare = 0.25

// divide adds to the document what dividing the batch among the devices of each answer
// comes to. Where time runs out, the answers that are left have none.
func (r *verdictRun) divide(ctx context.Context) {
	var room *strategies.Room
	if f := r.flags; f.evaluations == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.budget-time.Duration(r.clock()*float64(time.Second)))
		defer cancel()
		var ok bool
		if room, ok = r.room(); !ok {
			return
		}
	}
	for k := len(r.answers) - 1; k >= 0; k-- { // the most devices first
		a := &r.answers[k]
		if a.Devices < 2 || ctx.Err() != nil || len(a.On.Ranks()) < 2 {
			continue
		}
		x, err := strategies.NewComparison(r.loaded.Source, r.family, a.On, strategies.Config{Batch: int64(r.doc.Batch), Clock: r.clock, Room: room})
		if err != nil {
			continue
		}
		if q := x.Quick(ctx); q != nil {
			r.doc.Divide(r.machines[a.Machine].Name, a.Devices, q)
		}
	}
	r.doc.SayDivided()
}

// room returns what is left of the time for strategies: a step on n devices is up to n
// times the graph, which has to be made and simulated. It is not ok where there is no
// graph of so many samples.
func (r *verdictRun) room() (room *strategies.Room, ok bool) {
	begin, most := r.clock(), 0
	if _, err := r.family(int64(r.doc.Batch)); err != nil {
		return nil, false
	}
	for _, a := range r.answers {
		most = max(most, a.Devices)
	}
	room = &strategies.Room{Clock: r.clock, End: r.flags.budget.Seconds()}
	room.Expect(float64(most) * (r.clock() - begin))
	return room, true
}
