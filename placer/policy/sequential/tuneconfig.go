package sequential

import (
	"errors"
	"fmt"
	"math"

	"placer/internal/faults"
)

// TuneConfig describes learning on one graph from a pretrained policy.
type TuneConfig struct {
	Steps   int     // rounds of samples; the papers take fewer than 50
	Samples int     // placements evaluated in a round on four devices; 0 chooses by the size of the graph
	Elite   int     // placements that a late round learns from
	Rate    float64 // learning rate of the per-instance logits; 0 learns nothing
	// Workers is the number of goroutines that sample and evaluate; what comes out
	// does not depend on it.
	Workers int
}

// DefaultTune returns 49 rounds.
func DefaultTune() TuneConfig { return TuneConfig{Steps: 49, Elite: 32, Rate: 1, Workers: 1} }

// Validate reports every fault.
func (c TuneConfig) Validate() error {
	errs := faults.List{c.settings().validate()}
	errs.If(c.Workers < 1 || c.Workers > 1024, "finetune: %d workers, want 1 to 1024", c.Workers)
	return errors.Join(errs...)
}

// tuneSettings are all figures of a fine-tuning: those of TuneConfig, and those that
// nobody sets. The exported ones are part of a state's key, under their JSON names.
type tuneSettings struct {
	Steps   int `json:"steps"`
	Samples int `json:"samples"`
	// Rollouts is the number of placements made for each that is evaluated, which are
	// those whose own schedules end soonest.
	Rollouts int `json:"drafts"`
	Elite    int `json:"elite"`
	// Fits is the number of steps of the gradient on a round.
	Fits int `json:"fits"`
	// Rate is that of a logit per unit and device, TiedRate that of a weight per unit
	// and tied feature, as a factor of Rate.
	Rate     float64 `json:"rate"`
	TiedRate float64 `json:"link_rate"`
	// PerturbedShare is the share of rollouts under a correlated perturbation: units
	// that belong together are drawn to a device by adding Perturbation to their logits.
	PerturbedShare float64 `json:"pushed"`
	Perturbation   float64 `json:"push"`
	// Temperatures are drawn between Coolest and Hottest, which falls to 1.
	Coolest float64 `json:"coolest"`
	Hottest float64 `json:"hottest"`

	// Samples of a round on four devices where Samples is 0. They follow from a time: a
	// minute on two cores for a graph of up to smallGraph ops, five for larger ones,
	// whose evaluation takes up to tens of milliseconds. A graph of more than
	// largeGraph ops has largeSamples over the number of devices, and fewer in
	// proportion above hugeGraph ops, but at least fewestSamples.
	smallSamples, manyLogitsSamples, largeSamples, fewestSamples int
	smallGraph, largeGraph, hugeGraph                            int
	// maxDevices is the number of devices above which rounds do not grow any more.
	maxDevices int

	// manyLogitsFactor is by how much a round takes more steps of the gradient, at a rate
	// that is higher by as much, where a sample of the last round would else stray from
	// what was learned in more than one decision (see strays).
	manyLogitsFactor int
	// openingFits is the number of steps of the gradient with which a level begins:
	// few, for the coarser level's best placements are to be a start and not the end.
	// Above largeGraph ops, where a round has the fewest samples, and more logits than
	// rounds converge on otherwise, it is openingRounds rounds' steps: the first samples
	// would else stray from the coarser level's in nearly every cell.
	openingFits, openingRounds int

	// shares are those of the steps, by level; the finest has the rest.
	shares [atTimeSteps + 1]float64
	// oldest is the number of rounds after which a placement is no longer learned from.
	oldest int

	// fewest is the number of samples of a round that time is short for, firstSamples
	// that of the first round under a budget in seconds, by which speed is measured.
	fewest, firstSamples int
	// abreast is the number of rollouts that a worker makes side by side.
	abreast int
	// prior is that of all rollouts: what is learned on the graph is added to the
	// scores under one prior.
	prior heuristic
}

// settings returns those of c.
func (c TuneConfig) settings() *tuneSettings {
	return &tuneSettings{
		Steps: c.Steps, Samples: c.Samples, Rollouts: 2, Elite: c.Elite, Fits: 15, Rate: c.Rate, TiedRate: 0.3,
		PerturbedShare: 0.5, Perturbation: 10, Coolest: 0.7, Hottest: 2,
		smallSamples: 256, manyLogitsSamples: 1024, largeSamples: 2048, fewestSamples: 128,
		smallGraph: 10_000, largeGraph: 40_000, hugeGraph: 100_000, maxDevices: 8,
		manyLogitsFactor: 2, openingFits: 10, openingRounds: 2,
		shares: [...]float64{atSegments: 0.17, atChains: 0.08, atTimeSteps: 0.35}, oldest: 5,
		fewest: 16, firstSamples: 64, abreast: 16,
		prior: heuristic{rule: listRule, load: 0.3, transfers: 1, colocate: true, learned: 1},
	}
}

func (c *tuneSettings) validate() error {
	var errs faults.List
	errs.If(c.Steps < 1, "finetune: steps is %d, want at least 1", c.Steps)
	errs.If(c.Samples < 0 || c.Samples == 1, "finetune: samples is %d, want at least 2, or 0 to choose by the graph", c.Samples)
	if c.Elite < 1 || c.Rollouts < 1 || c.Fits < 1 || c.openingFits < 1 || c.openingRounds < 1 || c.manyLogitsFactor < 1 || c.maxDevices < 1 {
		errs = append(errs, fmt.Errorf("finetune: elite %d, rollouts %d, fits %d (%d or those of %d rounds to begin with, %d times as many), devices %d must be at least 1",
			c.Elite, c.Rollouts, c.Fits, c.openingFits, c.openingRounds, c.manyLogitsFactor, c.maxDevices))
	}
	if n := min(c.smallSamples, c.manyLogitsSamples, c.largeSamples, c.fewestSamples, c.fewest, c.firstSamples, c.abreast); n < 1 {
		errs = append(errs, fmt.Errorf("finetune: a round of %d samples, want at least 1", n))
	}
	errs.If(!(c.Rate >= 0) || math.IsInf(c.Rate, 1) || !(c.TiedRate >= 0) || !(c.Perturbation >= 0) || !(c.PerturbedShare >= 0) || !(c.PerturbedShare <= 1), "finetune: rates %g and %g and perturbation %g must be finite and not negative, the share %g of perturbed rollouts 0 to 1", c.Rate, c.TiedRate, c.Perturbation, c.PerturbedShare)
	errs.If(!(c.Coolest > 0) || !(c.Coolest <= 1) || !(c.Hottest >= 1), "finetune: temperatures from %g to %g, want more than 0 and around 1", c.Coolest, c.Hottest)
	errs.If(!(c.smallGraph <= c.largeGraph && c.largeGraph <= c.hugeGraph), "finetune: graphs of %d, %d and %d ops, want them in this order", c.smallGraph, c.largeGraph, c.hugeGraph)
	return errors.Join(errs...)
}

// level returns the level of step k of a run that began with level start: from
// coarse to fine, and from time steps, which no layer's segments are made of, to
// cells.
func (c *tuneSettings) level(k int, start level) level {
	k-- // the first step is that of every level
	for l := start; l != atCells; l-- {
		n := int(c.shares[l]*float64(c.Steps) + 0.5)
		if k < n {
			return l
		}
		if k -= n; l == atTimeSteps {
			break
		}
	}
	return atCells
}

// within reports whether level l's placements are some of level start's.
func within(l, start level) bool {
	return l == start || start == atCells || l > start && l != atTimeSteps && start != atTimeSteps
}
