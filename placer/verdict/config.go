package verdict

import (
	"errors"

	"placer/internal/faults"
	"placer/placer/methods"
	"placer/placer/search"
	"placer/plan"
)

// Config bounds a sweep.
type Config struct {
	// Counts are the numbers of devices, ascending; nil: every one from 1, to hw.MaxPlaced.
	Counts []int
	// Budget in seconds is for the whole sweep and counts from the zero of the host's
	// clock. In evaluations it is for each count of each machine, and is used in whole
	// rounds, so that a larger budget repeats all that a smaller one does.
	Budget plan.Budget
	Seed   uint64
	// Workers is how many methods run at once. Under a budget in evaluations nothing
	// depends on it.
	Workers int
	// Methods are those of package placer/methods that a count is searched by, beside
	// the answers for fewer devices and the polish of the best; nil: those of Methods.
	Methods []string
}

// Host is what a sweep uses of its surroundings.
type Host struct {
	search.Host
	// Tell, if not nil, is told of each answer as it is found; the returned ones may be
	// better.
	Tell func(*Answer)
}

// Methods are the names of the methods that a sweep of a graph of so many ops searches by
// where nothing else is said: those that give something in seconds.
func Methods(ops int) []string {
	names := []string{"single", "human", "listsched", "heft-units", "anneal", "GO-one"}
	if ops <= largeOps {
		names = append(names, "etf-units", "heft", "m-topo", "m-etf", methods.ZeroShot, exact)
	}
	return names
}

// largeOps is the size of a graph from which on a sweep leaves out what takes seconds.
const largeOps = 40_000

// exact is branch and bound, for graphs of so many ops at most.
const (
	exact    = "exact"
	exactOps = 64
)

// Validate reports every fault.
func (c Config) Validate() error {
	var errs faults.List
	errs.If(c.Budget.Seconds < 0 || c.Budget.Evaluations < 0 || c.Budget == (plan.Budget{}), "budget: %g seconds and %d evaluations, want one above 0 and none below", c.Budget.Seconds, c.Budget.Evaluations)
	errs.If(c.Workers < 1, "workers: %d, want at least 1", c.Workers)
	ascending := true
	for k, n := range c.Counts {
		ascending = ascending && n > 0 && (k == 0 || n > c.Counts[k-1])
	}
	errs.If(!ascending, "counts of devices are %v, want ascending ones from 1", c.Counts)
	return errors.Join(errs...)
}
