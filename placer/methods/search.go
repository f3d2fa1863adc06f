package methods

import (
	"context"
	"fmt"
	"slices"

	"placer/baselines/search/anneal"
	"placer/baselines/search/local"
	"placer/hw"
	"placer/placer/policy/sequential"
	"placer/placer/pretrained"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/sim"
)

// The methods that use the pretrained policy, the one that learns from nothing, and
// the one that searches as if transfers never waited.
const (
	ZeroShot  = "zero-shot"
	FineTuned = "fine-tuned"
	// FineTunedPPO learns by PPO through the network; FineTuned by the graph's own logits.
	FineTunedPPO = "fine-tuned-ppo"
	GoOne        = "GO-one"
	Uncontended  = "uncontended"
	// Guided is annealing by a network of moves.
	Guided = "guided"
)

// row is a method of a search in the order of the rows.
type row struct {
	name string
	// weight is its share of the budget relative to the others that have one; 0 for
	// those that take a moment.
	weight float64
	// only, if not nil, says for which problems the method is there.
	only func(Problem) bool
	// asked marks those that a search has only where they are named.
	asked bool
	// slow marks baselines that take long on large graphs.
	slow bool
	// judged marks baselines that look at what they are judged by, or at the load.
	judged bool
}

// Problem is what the choice of a search's methods depends on.
type Problem struct {
	Objective plan.Objective
	Tasks     plan.Tasks
	// Uncontended says that transfers never wait for one another.
	Uncontended bool
	// Unlayered says that the graph names no layers, so that no expert's rule is about it.
	Unlayered bool
	// Machine is what is placed on; nil stands for any.
	Machine *hw.Machine
	// Ops is how many the graph has; 0 stands for few.
	Ops int
	// FromScratch leaves out what is pretrained.
	FromScratch bool
}

// Of returns what the choice of p's methods depends on.
func Of(p *problem.Problem) Problem {
	return Problem{Objective: p.Objective, Tasks: p.Tasks, Uncontended: p.Contention == sim.Uncontended, Unlayered: !p.Graph.Layered(), Machine: p.Machine, Ops: p.Graph.NumOps()}
}

// largeGraph is the number of ops from which on a graph is searched folded, and without
// what takes minutes for an answer.
const largeGraph = 100_000

// smallGraph is the number of ops up to which plans a change or two away are few enough to
// try them all.
const smallGraph = 32

func (p Problem) large() bool  { return p.Ops >= largeGraph }
func (p Problem) small() bool  { return p.Ops > 0 && p.Ops <= smallGraph }
func layered(p Problem) bool   { return !p.Unlayered }
func unlayered(p Problem) bool { return p.Unlayered }
func byLoad(p Problem) bool    { return p.Objective.Normal() == plan.Throughput }
func byStep(p Problem) bool    { return p.Objective.Normal() == plan.Step }
func freely(p Problem) bool    { return p.Objective.Normal() == plan.Step && p.Uncontended }
func onTwo(p Problem) bool     { return p.Machine == nil || p.Machine.NumDevices() == 2 }
func withHost(p Problem) bool  { return p.Machine == nil || p.Machine.Host() >= 0 }

// ForSearch returns every method that a search of problems like p may have, in the order
// of the rows, and last the portfolio and the one that polishes the best of them. o is
// what all of them are told; each but the portfolio has half of its workers. A search has
// those of ByDefault where none are named.
func ForSearch(p Problem, o Options) []search.Method {
	last := []search.Method{shared(p, o), polish(p.Tasks)}
	o.Workers = max(1, o.Workers/2)
	var all []search.Method
	for _, r := range rows {
		if r.only != nil && !r.only(p) || p.FromScratch && (r.name == ZeroShot || r.name == FineTuned || r.name == Guided) {
			continue
		}
		m, err := Find(r.name)
		if err != nil {
			panic(err)
		}
		x := search.Method{Name: m.Name, Kind: m.Kind, Weight: r.weight, Note: Careless(p.Objective, m), New: func(s search.Start) (plan.Placer, error) {
			own := o
			own.Start = s
			return m.New(own)
		}}
		if x.Weight > 0 {
			x.Stage = search.StageSearch
		}
		all = append(all, x)
	}
	return append(all, last...)
}

// byPolicy reports whether a search begins with the pretrained policy's plan where no
// methods are named. Where the placement of a graph that is not large is all there is to
// decide, a search from the rules' plans ends as short in the mean, and the policy's plan
// may begin it in a worse valley (docs/adr/0108-searches-that-begin-with-the-rules.md).
func (p Problem) byPolicy() bool { return p.large() || !byStep(p) || p.Tasks&^plan.Place != 0 }

// ByDefault returns those of ForSearch's methods that a search of problems like p has where
// none are named: the baselines, and the portfolio, whose arms the others are. Slow
// baselines are marked, and the pretrained policy, where it begins, makes no samples that
// would take longer than its time.
func ByDefault(p Problem, all []search.Method) []search.Method {
	all = slices.DeleteFunc(slices.Clone(all), func(m search.Method) bool {
		return m.Stage != search.StageBaseline && m.Name != Portfolio || m.Name == ZeroShot && !p.byPolicy()
	})
	for k := range all {
		m := &all[k]
		m.Slow = slices.ContainsFunc(rows, func(r row) bool { return r.name == m.Name && r.slow })
		if m.Name == ZeroShot {
			m.New = func(search.Start) (plan.Placer, error) {
				p, err := pretrained.Policy()
				return sequential.Placer{Policy: p, Sparing: true}, err
			}
		}
	}
	return all
}

// Separate returns those of ForSearch's methods but the portfolio, each for itself with a
// share of the budget by its weight: what a search has that measures the steps that a
// policy learns from.
func Separate(all []search.Method) []search.Method {
	return slices.DeleteFunc(slices.Clone(all), func(m search.Method) bool {
		return m.Name == Portfolio || slices.ContainsFunc(rows, func(r row) bool { return r.name == m.Name && r.asked })
	})
}

// Careless says of a method that decides without objective o that it does; empty for
// others.
func Careless(o plan.Objective, m Method) string {
	judged := slices.ContainsFunc(rows, func(r row) bool { return r.name == m.Name && r.judged })
	if o.Normal() == plan.Step || m.Kind != plan.Baseline && m.Name != Uncontended || judged {
		return ""
	}
	return fmt.Sprintf("without regard to the %s objective, by which all rows are judged", o)
}

// polish starts from the best that the other methods found: local search, or
// annealing of all tasks where there is more to decide than placement.
func polish(tasks plan.Tasks) search.Method {
	m := search.Method{Name: "polish", Kind: plan.Search, Stage: search.StageFinish, Weight: 0.5, New: func(s search.Start) (plan.Placer, error) {
		return renamed{local.Placer{Start: s.Device}, "polish"}, nil
	}}
	if tasks.Has(plan.Schedule) || tasks.Has(plan.Fuse) {
		m.Weight, m.New = 2, func(s search.Start) (plan.Placer, error) {
			a := anneal.Placer{Together: true, Workers: 1}
			if s.Device != nil {
				a.From = []plan.Decision{s.Decision}
			}
			return renamed{a, "polish"}, nil
		}
	}
	return m
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
