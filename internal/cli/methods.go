package cli

import (
	"context"
	"slices"
	"strings"

	"placer/baselines/anneal"
	"placer/baselines/heft"
	"placer/baselines/human"
	"placer/baselines/listsched"
	"placer/baselines/local"
	"placer/baselines/metis"
	"placer/baselines/random"
	"placer/baselines/roundrobin"
	"placer/baselines/single"
	"placer/baselines/tfdefault"
	"placer/graph/unit"
	"placer/placer"
	"placer/plan"
)

// methods returns every method of a search, in the order of the rows. level is
// where methods decide that leave it open.
func methods(level unit.Level, workers int) []placer.Method {
	fixed := func(p plan.Placer) placer.Method {
		return placer.Method{Name: p.Name(), Kind: p.Kind(), New: func(placer.Start) (plan.Placer, error) { return p, nil }}
	}
	share := func(weight float64, start func(device []uint8) plan.Placer) placer.Method {
		p := start(nil)
		return placer.Method{Name: p.Name(), Kind: p.Kind(), Stage: placer.StageSearch, Weight: weight,
			New: func(s placer.Start) (plan.Placer, error) { return start(s.Device), nil }}
	}
	return []placer.Method{
		fixed(human.Placer{}),
		fixed(single.Placer{}),
		fixed(tfdefault.Placer{}),
		fixed(roundrobin.Placer{Level: level}),
		fixed(random.Placer{Level: level, Samples: 1}),
		fixed(metis.Placer{}),
		fixed(listsched.Placer{}),
		fixed(heft.HEFT{}),
		fixed(heft.ETF{}), // last: it takes seconds on a large graph
		share(0.25, func([]uint8) plan.Placer { return random.Placer{Level: level} }),
		share(0.5, func(from []uint8) plan.Placer { return local.Placer{Start: from} }),
		share(4, func(from []uint8) plan.Placer {
			a := anneal.Placer{Workers: max(1, workers/2)}
			if from != nil {
				a.Starts = [][]uint8{from}
			}
			return a
		}),
		policy(level, max(1, workers/2)),
		polish(0.5),
	}
}

// polish is local search from the best that the other methods found.
func polish(weight float64) placer.Method {
	return placer.Method{Name: "polish", Kind: plan.Search, Stage: placer.StageFinish, Weight: weight, New: func(s placer.Start) (plan.Placer, error) {
		return renamed{local.Placer{Start: s.Device}, "polish"}, nil
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

// policy is GO-one: trained from nothing on the graph at hand.
func policy(level unit.Level, workers int) placer.Method {
	return placer.Method{Name: "GO-one", Kind: plan.Policy, Stage: placer.StageSearch, Weight: 4, New: func(placer.Start) (plan.Placer, error) {
		c := placer.DefaultPolicy()
		c.Level, c.Workers = level, workers
		return placer.NewPolicy(c)
	}}
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
