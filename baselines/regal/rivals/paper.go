package rivals

import (
	"placer/baselines/exact/cpsat"
	"placer/baselines/regal/brkga"
	"placer/baselines/regal/phase"
	"placer/baselines/regal/propose"
)

// Base is the name of the method that the table compares with.
const Base = "BRKGA 5K"

// Options say which methods take part beyond those that always do.
type Options struct {
	CPSAT  *cpsat.Library // nil: no row
	Solver cpsat.Params   // of CP-SAT
	// REGAL and GAS propose where they are not nil; REGAL's row brings IDRS with it.
	REGAL, GAS propose.Proposer
	Others     []Proposer // rows behind REGAL's
	// BRKGA50K adds the search with ten times the evaluations.
	BRKGA50K bool
}

// Proposer is a proposer with the name of its row.
type Proposer struct {
	Name string
	propose.Proposer
}

// Methods returns the table's methods in its order, then ours.
func Methods(o Options) (all []Method) {
	ga := brkga.Default()
	if o.CPSAT != nil {
		all = append(all, solver(o.CPSAT, o.Solver))
	}
	tuned := propose.Tuned()
	all = append(all, gpdfs(),
		climbing("local search", localSearch{starts: 1, neighbours: true, eager: true}),
		climbing("local search, insertion", localSearch{starts: 1, sideways: true}),
		genetic(Base, ga, 1),
		proposed("tuned BRKGA", propose.Fixed{Shape: tuned.Shape}, tuned.Config))
	if o.GAS != nil {
		all = append(all, proposed("GAS", o.GAS, ga))
	}
	if o.REGAL != nil {
		once := ga
		once.OneGeneration = true
		all = append(all, proposed("IDRS", o.REGAL, once), proposed("REGAL", o.REGAL, ga))
	} else {
		once := ga
		once.OneGeneration = true
		all = append(all, genetic("random search", once, 1))
	}
	for _, x := range o.Others {
		all = append(all, proposed(x.Name, x, ga))
	}
	if o.BRKGA50K {
		all = append(all, genetic("BRKGA 50K", ga, 10))
	}
	return append(all, phases("phases, quick", phase.Quick()), phases("phases", phase.Default()))
}

// Published is what table 1 prints for a method, in percent.
type Published struct{ Improvement, Gap float64 }

// Task is a column of table 1.
type Task string

// The tasks.
const (
	Synthetic Task = "synthetic"
	Time      Task = "time"
	Memory    Task = "memory"
)

// PaperRow returns the figures of table 1 for a method, and whether it has any.
func PaperRow(t Task, method string) (Published, bool) {
	rows := map[string][3]Published{ // time, memory, synthetic
		"CP-SAT":       {{15.85, 1.00}, {-1.48, 8.06}, {19.50, 0.00}},
		"GP+DFS":       {{-37.32, 66.98}, {-6.51, 14.77}, {-55.8, 93.66}},
		"local search": {{-1.66, 22.63}, {0.63, 7.24}, {0.08, 24.60}},
		Base:           {{0, 20.19}, {0, 7.98}, {0, 24.63}},
		"tuned BRKGA":  {{3.20, 16.40}, {0.80, 7.11}, {3.11, 20.76}},
		"GAS":          {{3.79, 15.24}, {0.16, 7.67}, {0.80, 23.48}},
		"IDRS":         {{-6.87, 28.60}, {-3.16, 12.39}, {-12.12, 39.72}},
		"REGAL":        {{7.09, 11.04}, {3.56, 4.44}, {4.81, 18.57}},
	}
	x, ok := rows[method]
	if !ok {
		return Published{}, false
	}
	switch t {
	case Time:
		return x[0], true
	case Memory:
		return x[1], true
	}
	return x[2], true
}
