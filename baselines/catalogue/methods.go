package catalogue

import (
	"placer/baselines/anneal"
	"placer/baselines/baechi"
	"placer/baselines/balance"
	"placer/baselines/contiguous"
	"placer/baselines/exact"
	"placer/baselines/gdp"
	"placer/baselines/hdp"
	"placer/baselines/heft"
	"placer/baselines/human"
	"placer/baselines/listsched"
	"placer/baselines/local"
	"placer/baselines/metis"
	"placer/baselines/random"
	"placer/baselines/rl2017"
	"placer/baselines/roundrobin"
	"placer/baselines/scotch"
	"placer/baselines/single"
	"placer/baselines/tfdefault"
	"placer/baselines/uncontended"
	"placer/placer"
	"placer/placer/pretrained"
	"placer/placer/transfer"
	"placer/plan"
)

// Methods returns every method, in the order in which tables list them: rules,
// list schedulers, searches, learned policies. To add a method, add its line.
func Methods() []Method {
	return []Method{
		fixed(human.Placer{}, "whole layers, in order, on consecutive devices", "RL-2017, GO: expert placement"),
		fixed(single.Placer{}, "everything on one device", "RL-2017: single GPU"),
		fixed(tfdefault.Placer{}, "TensorFlow's own choice: the first device that can run an op", "GO: TF-default"),
		made("units dealt out in turn", "", func(o Options) plan.Placer { return roundrobin.Placer{Level: o.Level} }),
		made("one random placement of units", "", func(o Options) plan.Placer { return random.Placer{Level: o.Level, Samples: 1} }),
		needing("gpmetis", fixed(metis.Placer{}, "parts of equal compute, least communication across the cut", "Karypis and Kumar 1998; GO: METIS")),
		needing("scotch_gmap", fixed(scotch.Placer{}, "Scotch's static mapping of ops and transfers to all devices, the CPU too", "Pellegrini 2009; RL-2017: Scotch")),
		needing("scotch_gmap", fixed(scotch.Placer{MinCut: true}, "Scotch's mapping to the GPUs alone", "Pellegrini 2009; RL-2017: MinCut")),
		fixed(listsched.Placer{}, "critical-path list scheduling of units, 27 rules, the best kept", ""),
		fixed(heft.HEFT{}, "each op, by upward rank, to the device that ends it first", "Topcuoglu, Hariri, Wu 2002"),
		fixed(heft.ETF{}, "always the ready op and device with the earliest start", "Hwang, Chow, Anger, Lee 1989"),
		fixed(contiguous.Placer{Linear: true}, "stages cut from topological orders, by the largest load", "Narayanan et al. 2019: PipeDream"),
		fixed(contiguous.Placer{}, "the optimal contiguous stages, by the largest load", "Tarnawski et al. 2020: DP over downsets"),
		fixed(heft.HEFT{Units: true}, "HEFT on chains, segments and cells, the best kept", "Topcuoglu, Hariri, Wu 2002"),
		fixed(heft.ETF{Units: true}, "ETF on chains, segments and cells, the best kept", "Hwang, Chow, Anger, Lee 1989"),
		fixed(baechi.Placer{Algorithm: baechi.TOPO}, "ops in topological order fill one device after the other", "Baechi (SoCC 2020): m-TOPO"),
		fixed(baechi.Placer{Algorithm: baechi.ETF}, "earliest start among the devices that have room", "Baechi (SoCC 2020): m-ETF"),
		fixed(baechi.Placer{Algorithm: baechi.SCT}, "earliest start, devices kept for the favourite child of a linear program", "Baechi (SoCC 2020): m-SCT"),
		made("the best of random placements of units", "RL-2017: random search", func(o Options) plan.Placer { return random.Placer{Level: o.Level} }),
		made("local search on units, from chains to cells", "", func(o Options) plan.Placer { return local.Placer{Start: o.Start} }),
		made("simulated annealing on units, coarse to fine", "GO 5: simulated annealing", func(o Options) plan.Placer {
			a := anneal.Placer{Workers: max(1, o.Workers)}
			if o.Start != nil {
				a.Starts = [][]uint8{o.Start}
				if o.Priority != nil || o.Fusion != nil {
					a.From = []plan.Decision{{Device: o.Start, Priority: o.Priority, Fusion: o.Fusion}}
				}
			}
			return a
		}),
		made("annealing of loads, by the largest, stages of any shape", "", func(o Options) plan.Placer { return balance.Placer{Start: o.Start} }),
		fixed(exact.Exact{}, "branch and bound over all placements and priorities of up to 64 ops; says OPTIMAL when proven", ""),
		made("CP-SAT on the step as jobs and transfers, a relaxation whose bound holds; branch and bound without the library", "Perron et al.: OR-Tools; REGAL: CP-SAT", func(o Options) plan.Placer { return exact.CPSAT{} }),
		made("annealing of ops as if transfers never waited, first come first served", "DOPPLER (ICLR 2026): its model", func(o Options) plan.Placer { return uncontended.Placer{Start: o.Start} }),
		made("a sequence-to-sequence LSTM over co-location groups, asynchronous REINFORCE", "RL-2017", func(Options) plan.Placer { return rl2017.Placer{Config: rl2017.Default()} }),
		made("a grouper of units and a sequence-to-sequence LSTM over the groups, REINFORCE", "Mirhoseini et al. 2018: HDP", func(o Options) plan.Placer {
			c := hdp.Default()
			c.Level = o.Level
			return hdp.Placer{Config: c}
		}),
		made("GraphSAGE and Transformer-XL by PPO, the average reward as baseline", "GDP (2019): GDP-one", func(o Options) plan.Placer {
			c := gdp.One()
			c.Level = o.Level
			return gdp.PlacerOne{Config: c}
		}),
		joint(made("the same, one policy for all graphs of a comparison; alone on a single graph", "GDP (2019): GDP-batch", func(o Options) plan.Placer {
			c := gdp.Batch()
			c.Level = o.Level
			return gdp.PlacerBatch{Config: c, Companions: o.Companions}
		})),
		{Name: "GO-one", Kind: plan.Policy, About: "the learned policy, trained from nothing on the graph at hand", Source: "GO (NeurIPS 2020), GDP (2019)", New: func(o Options) (plan.Placer, error) {
			c := placer.DefaultPolicy()
			c.Level, c.Workers = o.Level, max(1, o.Workers)
			p, err := placer.NewPolicy(c)
			if err == nil && o.Earlier != nil {
				p.Resume(o.Earlier, o.Checkpoint)
			}
			return p, err
		}},
		{Name: "zero-shot", Kind: plan.Policy, About: "the built-in pretrained policy as it is, the best of 16 samples", Source: "GO 5: generalization", New: func(Options) (plan.Placer, error) {
			p, err := pretrained.Policy()
			return transfer.Placer{Policy: p}, err
		}},
		{Name: "fine-tuned", Kind: plan.Policy, About: "the built-in pretrained policy after at most 49 steps of learning on the graph at hand", Source: "GO 5: fine-tuning", New: func(Options) (plan.Placer, error) {
			p, err := pretrained.Policy()
			return transfer.Tuner{Policy: p, Config: transfer.DefaultTune(), Sparing: true}, err
		}},
	}
}
