package methods

import (
	"slices"

	"placer/baselines/search/anneal"
	"placer/baselines/search/fold"
	"placer/baselines/search/local"
	"placer/placer/policy/cem"
	"placer/placer/portfolio"
	"placer/placer/pretrained"
	"placer/placer/search"
	"placer/plan"
)

// Portfolio is the method that shares a budget between the others.
const Portfolio = portfolio.Name

// Annealing begins with the coarsened graph, in two stages, and goes on with whole
// chains. Started from a good plan, it leaves out the coarsened graph, or all but single
// cells and ops.
const (
	coolChains = 2
	coolCells  = 4
)

// shared returns the portfolio for problems like p. o is what its arms are told; as many
// of them run at once as o has workers.
func shared(p Problem, o Options) search.Method {
	return search.Method{Name: Portfolio, Kind: plan.Search, Stage: search.StageShare, Weight: 8, New: func(s search.Start) (plan.Placer, error) {
		return portfolio.Placer{Arms: arms(p, o), Start: s.Decision, Walkers: o.Walkers, Workers: o.Workers}, nil
	}}
}

// arms returns those of a portfolio for problems like p.
func arms(p Problem, o Options) []portfolio.Arm {
	o.Workers, o.Start = 1, search.Start{}
	var all []portfolio.Arm
	own := func(name string) {
		k := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
		if p.FromScratch && name == FineTuned || rows[k].only != nil && !rows[k].only(p) {
			return
		}
		all = append(all, portfolio.Arm{Name: name, New: func(plan.Decision) (plan.Placer, error) {
			m, err := Find(name)
			if err != nil {
				return nil, err
			}
			return m.New(o)
		}})
	}
	from := func(name string, tasks plan.Tasks, of func(plan.Decision) plan.Placer) {
		all = append(all, portfolio.Arm{Name: name, FromBest: true, New: func(start plan.Decision) (plan.Placer, error) {
			return turn{of(start), tasks, start}, nil
		}})
	}
	common := new(anneal.Shared)
	guide := guideFor(p)
	placed := func(cool int, recreate bool) func(plan.Decision) plan.Placer {
		return func(start plan.Decision) plan.Placer {
			return anneal.Placer{Starts: [][]uint8{start.Device}, Cool: cool, Recreate: recreate, Workers: 1, Shared: common, Guide: guide}
		}
	}
	together := func(start plan.Decision) plan.Placer {
		return anneal.Placer{From: []plan.Decision{start}, Together: true, Workers: 1, Shared: common}
	}
	anew := func(name string, x plan.Placer) {
		all = append(all, portfolio.Arm{Name: name, New: func(plan.Decision) (plan.Placer, error) { return x, nil }})
	}
	steps := p.Objective.Normal() == plan.Step
	if p.large() && steps {
		anew("fold", fold.Placer{})
	}
	own("balance")
	own(Uncontended)
	anew("anneal", anneal.Placer{Workers: 1, Shared: common, Guide: guide})
	if steps { // what list scheduling knows of
		anew("listed", anneal.Placer{Cool: coolChains, Recreate: true, Workers: 1, Shared: common})
	}
	from("chains", plan.Place, placed(coolChains, false))
	if steps {
		from("recreate", plan.Place, placed(coolChains, true))
	}
	if beside := p.Tasks &^ plan.Place; beside != 0 {
		from("all tasks", p.Tasks, together)
		for _, t := range []plan.Tasks{plan.Fuse, plan.Schedule} {
			if beside.Has(t) && beside != t {
				from(t.String(), t, together)
			}
		}
	}
	from("cells", plan.Place, placed(coolCells, false))
	from("local", plan.Place, func(start plan.Decision) plan.Placer { return local.Placer{Start: start.Device} })
	if p.large() {
		return all
	}
	if ByNetwork(p.Tasks) { // GO-one's network learns slower than the graph's own logits
		anew("cross-entropy", cem.Policy{Config: cem.Default()})
	} else {
		own(GoOne)
	}
	own(FineTuned)
	return all
}

// guideFor returns the network that chooses moves in the arms of a portfolio for problems
// like p. It has learned from placements without fusion; where more is decided it does not
// pay.
func guideFor(p Problem) anneal.Guide {
	if p.FromScratch || !byStep(p) || p.Tasks&^plan.Place != 0 {
		return nil
	}
	n, err := pretrained.Moves()
	if err != nil {
		panic(err) // the program carries it
	}
	return n
}
