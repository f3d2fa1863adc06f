package verdict

import (
	"slices"

	"placer/placer/methods"
	"placer/placer/search"
	"placer/plan"
)

// searches returns the methods that search a count, from the best plan known, which they
// begin with.
func (x *count) searches() ([]search.Method, error) {
	if x.c.Methods != nil {
		return x.named(x.c.Methods)
	}
	return x.named(Methods(x.source.NumOps()))
}

// annealing returns annealing alone, from the best plan known.
func (x *count) annealing() ([]search.Method, error) { return x.named([]string{"anneal"}) }

// repairs returns what makes the best plan known fit.
func (x *count) repairs() ([]search.Method, error) {
	known, all := x.a.Decision, x.all()
	mend := search.Method{Name: repair, Kind: plan.Search, Stage: search.StageSearch, Weight: 4, New: func(search.Start) (plan.Placer, error) { return repairer{x.p, known}, nil }}
	return append(x.given(), mend, all[len(all)-1]), nil
}

// named returns the methods of these names that have something to decide, between the best
// plan known and what polishes the best of all.
func (x *count) named(names []string) ([]search.Method, error) {
	ms, all := x.given(), x.all()
	if x.p.Graph.NumOps() <= exactOps && x.a.Devices > 1 && slices.Contains(names, exact) {
		m, err := methods.Find(exact)
		if err != nil {
			return nil, err
		}
		ms = append(ms, search.Method{Name: m.Name, Kind: m.Kind, Stage: search.StageSearch, Weight: 1, New: func(search.Start) (plan.Placer, error) { return m.New(methods.Default()) }})
	}
	for k, m := range all {
		if k == len(all)-1 || slices.Contains(names, m.Name) && x.suits(m.Name) {
			ms = append(ms, m)
		}
	}
	return ms, nil
}

// given returns the method that gives the best plan known, where there is one.
func (x *count) given() []search.Method {
	if x.a.Device == nil {
		return nil
	}
	return []search.Method{methods.Given([]plan.Decision{x.a.Decision})}
}

// all returns every method of a search of the count, the last of which polishes. Baselines
// are dressed in what the best plan known has.
func (x *count) all() []search.Method {
	known := x.a.Decision
	all := methods.ForSearch(methods.Of(x.p), methods.Options{Level: methods.Default().Level, Workers: x.c.Workers})
	for k, m := range all {
		if m.Stage == search.StageBaseline {
			all[k].New = func(s search.Start) (plan.Placer, error) {
				placer, err := m.New(s)
				return dressed{placer, known}, err
			}
		}
	}
	return all
}

// suits reports whether a method has something to decide on so many devices: on one the
// fusion, on more what a known plan for one does not say.
func (x *count) suits(name string) bool {
	if x.a.Devices == 1 {
		return name == "single" || name == "anneal"
	}
	return name != "single" || x.a.Device == nil
}
