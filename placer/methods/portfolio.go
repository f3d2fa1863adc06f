package methods

import (
	"slices"

	"placer/baselines/search/anneal"
	"placer/baselines/search/exchange"
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
		return NewPortfolio(p, o, guidesFor(p), s.Decision), nil
	}}
}

// Guides choose the moves of a portfolio's annealing; nil: chance does.
type Guides struct {
	Place anneal.Guide // of placement alone
	All   anneal.Guide // of all tasks together
}

// NewPortfolio returns the portfolio for problems like p, from the decision start, which
// may be nil.
func NewPortfolio(p Problem, o Options, g Guides, start plan.Decision) portfolio.Placer {
	return portfolio.Placer{Arms: arms(p, o, g), Start: start, Walkers: o.Walkers, Workers: o.Workers}
}

// arms returns those of a portfolio for problems like p, in the order in which they are
// first tried.
func arms(p Problem, o Options, g Guides) []portfolio.Arm {
	o.Workers, o.Start = 1, search.Start{}
	l := &armList{problem: p, options: o, guides: g, shared: new(anneal.Shared)}
	if p.large() && byStep(p) {
		l.anew("fold", fold.Placer{})
	}
	l.own("balance")
	l.own(Uncontended)
	if p.small() {
		l.small()
		return l.all
	}
	l.anew("anneal", l.annealing(anneal.Placer{}))
	if byStep(p) { // what list scheduling knows of
		l.anew("listed", anneal.Placer{Cool: coolChains, Recreate: true, Fine: true, Workers: 1, Shared: l.shared})
	}
	l.fromBest()
	if p.large() {
		return l.all
	}
	if ByNetwork(p.Tasks) { // GO-one's network learns slower than the graph's own logits
		l.anew("cross-entropy", cem.Policy{Config: cem.Default()})
	} else {
		l.own(GoOne)
	}
	l.own(FineTuned)
	return l.all
}

// armList makes the arms of a portfolio.
type armList struct {
	problem Problem
	options Options // of its methods
	guides  Guides
	shared  *anneal.Shared // what its annealings know of the graph
	all     []portfolio.Arm
}

// anew adds an arm that starts from nothing.
func (l *armList) anew(name string, x plan.Placer) {
	l.all = append(l.all, portfolio.Arm{Name: name, New: func(plan.Decision, int) (plan.Placer, error) { return x, nil }})
}

// own adds a method of the catalogue, which starts from nothing, where a search of the
// problem may have it.
func (l *armList) own(name string) {
	k := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
	if l.problem.FromScratch && name == FineTuned || rows[k].only != nil && !rows[k].only(l.problem) {
		return
	}
	l.all = append(l.all, portfolio.Arm{Name: name, New: func(plan.Decision, int) (plan.Placer, error) {
		m, err := Find(name)
		if err != nil {
			return nil, err
		}
		return m.New(l.options)
	}})
}

// from adds an arm that decides tasks from the best plan.
func (l *armList) from(name string, tasks plan.Tasks, of func(plan.Decision) plan.Placer) {
	l.all = append(l.all, portfolio.Arm{Name: name, FromBest: true, New: func(start plan.Decision, _ int) (plan.Placer, error) {
		return turn{of(start), tasks, start}, nil
	}})
}

// annealing returns a with what all annealings of the portfolio have.
func (l *armList) annealing(a anneal.Placer) anneal.Placer {
	a.Workers, a.Shared, a.Guide, a.JointGuide = 1, l.shared, l.guides.Place, l.guides.All
	return a
}

// small adds the arms of a graph whose plans a change or two away can all be tried.
func (l *armList) small() {
	var known exchange.Memories
	l.all = append(l.all, portfolio.Arm{Name: "exchange", FromBest: true, New: func(start plan.Decision, walker int) (plan.Placer, error) {
		return turn{exchange.Placer{Start: start, Known: known.Of(walker)}, l.problem.Tasks, start}, nil
	}}, portfolio.Arm{Name: "scattered", New: func(_ plan.Decision, walker int) (plan.Placer, error) {
		return exchange.Placer{Known: known.Of(walker)}, nil
	}})
	l.anew("anneal", l.annealing(anneal.Placer{}))
	if l.problem.Tasks&^plan.Place != 0 {
		l.from("all tasks", l.problem.Tasks, l.together)
	}
}

// fromBest adds the arms that start from the best plan: of the placement from chains down,
// and of what is decided beside it.
func (l *armList) fromBest() {
	l.from("chains", plan.Place, l.placed(anneal.Placer{Cool: coolChains, Fine: true}))
	if byStep(l.problem) {
		l.from("recreate", plan.Place, l.placed(anneal.Placer{Cool: coolChains, Recreate: true, Fine: true}))
	}
	if beside := l.problem.Tasks &^ plan.Place; beside != 0 {
		l.from("all tasks", l.problem.Tasks, l.together)
		for _, t := range []plan.Tasks{plan.Fuse, plan.Schedule} {
			if beside.Has(t) && beside != t {
				l.from(t.String(), t, l.together)
			}
		}
	}
	l.from("cells", plan.Place, l.placed(anneal.Placer{Cool: coolCells, Fine: true}))
	l.from("local", plan.Place, func(start plan.Decision) plan.Placer { return local.Placer{Start: start.Device} })
}

// placed returns annealing of the placement like a.
func (l *armList) placed(a anneal.Placer) func(plan.Decision) plan.Placer {
	a = l.annealing(a)
	return func(start plan.Decision) plan.Placer {
		b := a
		b.Starts = [][]uint8{start.Device}
		return b
	}
}

// together returns annealing of all tasks at once.
func (l *armList) together(start plan.Decision) plan.Placer {
	return anneal.Placer{From: []plan.Decision{start}, Together: true, Workers: 1, Shared: l.shared, JointGuide: l.guides.All}
}

// guidesFor returns the networks that choose moves in the arms of a portfolio for problems
// like p: that of placement, where it alone is decided. Under fusion it does not pay, nor
// does that of all tasks in a whole search (docs/adr/0048).
func guidesFor(p Problem) (g Guides) {
	if p.FromScratch || !byStep(p) || p.Tasks&^plan.Place != 0 {
		return g
	}
	n, err := pretrained.Moves(plan.Place)
	if err != nil {
		panic(err) // the program carries it
	}
	g.Place = n
	return g
}
