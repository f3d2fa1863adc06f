package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"placer/baselines/anneal"
	"placer/baselines/catalogue"
	"placer/baselines/local"
	"placer/graph/unit"
	"placer/placer"
	"placer/plan"
)

// The rows of a search that use the pretrained policy.
const (
	zeroShot  = "zero-shot"
	fineTuned = "fine-tuned"
)

// weights give the searches and the policy their shares of a search's budget.
var weights = map[string]float64{"random-best": 0.25, "local": 0.5, "anneal": 4, "GO-one": 4, "balance": 4, fineTuned: 0.5, freeTransfers: 4}

// judged are the baselines that look at what they are judged by, or at the load.
var judged = map[string]bool{"single": true, "pipedream": true, "contiguous": true}

// forThroughput are the methods that come on top under that objective, by the
// method that they stand behind.
var forThroughput = map[string][]string{"single": {"pipedream", "contiguous"}, "local": {"balance"}}

// freeTransfers is the method that comes on top where transfers do not wait for
// one another: it searches under that model.
const freeTransfers = "uncontended"

// searchMethods are the methods of a search, in the order of the rows: those of
// the catalogue that give something within its budget. What takes seconds on a
// large graph comes last among the baselines.
var searchMethods = []string{
	"human", "single", "tf-default", "roundrobin", "random", "metis", "scotch", "listsched", "m-sct", "heft-units", "etf-units", "heft", "etf",
	zeroShot, "random-best", "local", "anneal", "GO-one", fineTuned,
}

// methods returns every method of a search, in the order of the rows. level is
// where methods decide that leave it open; free says that transfers never wait.
func methods(level unit.Level, workers int, o plan.Objective, tasks plan.Tasks, free bool) []placer.Method {
	var names []string
	for _, name := range searchMethods {
		names = append(names, name)
		if o.Normal() == plan.Throughput {
			names = append(names, forThroughput[name]...)
		}
		if free && name == "local" && o.Normal() == plan.Step {
			names = append(names, freeTransfers)
		}
	}
	var all []placer.Method
	for _, name := range names {
		m, err := catalogue.Find(name)
		if err != nil {
			panic(err)
		}
		x := placer.Method{Name: m.Name, Kind: m.Kind, Weight: weights[name], New: func(s placer.Start) (plan.Placer, error) {
			return m.New(catalogue.Options{Level: level, Workers: max(1, workers/2), Start: s.Device, Priority: s.Priority, Fusion: s.Fusion, Earlier: s.Earlier, Checkpoint: s.Checkpoint})
		}}
		x.Note = careless(o, name, m.Kind)
		if x.Weight > 0 {
			x.Stage = placer.StageSearch
		}
		all = append(all, x)
	}
	if tasks.Has(plan.Schedule) || tasks.Has(plan.Fuse) {
		return append(all, together(2))
	}
	return append(all, polish(0.5))
}

// careless says of a method that decides without objective o that it does.
func careless(o plan.Objective, name string, kind plan.Kind) string {
	if o.Normal() == plan.Step || kind != plan.Baseline && name != freeTransfers || judged[name] {
		return ""
	}
	return fmt.Sprintf("decides without the %s objective, by which it is judged", o)
}

// polish is local search from the best that the other methods found.
func polish(weight float64) placer.Method {
	return placer.Method{Name: "polish", Kind: plan.Search, Stage: placer.StageFinish, Weight: weight, New: func(s placer.Start) (plan.Placer, error) {
		return renamed{local.Placer{Start: s.Device}, "polish"}, nil
	}}
}

// together is polish where there is more to decide than placement: annealing of
// all tasks from the best that the other methods found.
func together(weight float64) placer.Method {
	return placer.Method{Name: "polish", Kind: plan.Search, Stage: placer.StageFinish, Weight: weight, New: func(s placer.Start) (plan.Placer, error) {
		a := anneal.Placer{Together: true, Workers: 1}
		if s.Device != nil {
			a.From = []plan.Decision{{Device: s.Device, Priority: s.Priority, Fusion: s.Fusion}}
		}
		return renamed{a, "polish"}, nil
	}}
}

// renamed is a placer under another name.
type renamed struct {
	plan.Placer
	name string
}

func (r renamed) Name() string { return r.name }

func (r renamed) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	q := *p
	if p.Report != nil {
		q.Report = func(x plan.Progress) { x.Method = r.name; p.Report(x) }
	}
	return r.Placer.Place(ctx, &q)
}

// choose returns the methods of all that names lists, in the order of all; no
// names mean all.
func choose(all []placer.Method, names []string) ([]placer.Method, error) {
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, m := range all {
		known = append(known, m.Name)
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, usagef("unknown method %q, want some of %s", n, strings.Join(known, ","))
		}
	}
	var chosen []placer.Method
	for _, m := range all {
		if slices.Contains(names, m.Name) {
			chosen = append(chosen, m)
		}
	}
	return chosen, nil
}
