package methods

import (
	"placer/baselines/exact"
	"placer/baselines/learned/gdp"
	"placer/baselines/learned/hdp"
	"placer/baselines/learned/rl2017"
	"placer/baselines/listsched"
	"placer/baselines/partition"
	"placer/baselines/partition/balance"
	"placer/baselines/partition/contiguous"
	"placer/baselines/partition/stages"
	"placer/baselines/regal/genetic"
	"placer/baselines/rules"
	"placer/baselines/search/anneal"
	"placer/baselines/search/local"
	"placer/baselines/search/uncontended"
	"placer/placer/policy/sequential"
	"placer/placer/pretrained"
	"placer/plan"
)

// Methods returns every method, in the order in which tables list them: rules,
// list schedulers, searches, learned policies. To add a method, add its line.
func Methods() []Method {
	return []Method{
		fixed(rules.Expert(), "whole layers, in order, on consecutive devices", "RL-2017, GO: expert placement"),
		fixed(rules.TopologicalCut(), "stages of equal compute, cut from the topological order: the expert's rule on a graph without layers", ""),
		fixed(rules.Single(), "everything on one device", "RL-2017: single GPU"),
		fixed(rules.TensorFlowDefault(), "TensorFlow's own choice: the first device that can run an op", "GO: TF-default"),
		fixed(rules.Offload(), "weights that the accelerators cannot hold stay on the host and are sent when their turn comes", "FlexGen (ICML 2023), ZeRO-Offload (ATC 2021)"),
		made("units dealt out in turn", "", func(o Options) plan.Placer { return rules.RoundRobin(o.Level) }),
		made("one random placement of units", "", func(o Options) plan.Placer { return rules.Random(o.Level) }),
		needing("gpmetis", fixed(partition.METIS{}, "parts of equal compute, least communication across the cut", "Karypis and Kumar 1998; GO: METIS")),
		needing("scotch_gmap", fixed(partition.Scotch{}, "Scotch's static mapping of ops and transfers to all devices, the CPU too", "Pellegrini 2009; RL-2017: Scotch")),
		needing("scotch_gmap", fixed(partition.Scotch{MinCut: true}, "Scotch's mapping to the GPUs alone", "Pellegrini 2009; RL-2017: MinCut")),
		fixed(listsched.Rules(), "critical-path list scheduling of units, 27 rules, the best kept", ""),
		fixed(listsched.HEFT(), "each op, by upward rank, to the device that ends it first", "Topcuoglu, Hariri, Wu 2002"),
		fixed(listsched.ETF(), "always the ready op and device with the earliest start", "Hwang, Chow, Anger, Lee 1989"),
		fixed(contiguous.Placer{Linear: true}, "stages cut from topological orders, by the largest load", "Narayanan et al. 2019: PipeDream"),
		fixed(contiguous.Placer{}, "the optimal contiguous stages, by the largest load", "Tarnawski et al. 2020: DP over downsets"),
		fixed(stages.Layers(), "the best contiguous split of the model's blocks, of any number of stages", ""),
		fixed(stages.Accelerate(), "modules fill one device after the other by memory", "Hugging Face accelerate: infer_auto_device_map"),
		fixed(stages.VLLM(), "an even number of layers a stage", "vLLM: get_pp_indices"),
		fixed(stages.LlamaCPP(), "layers by the memory of the GPUs", "llama.cpp: the default of --tensor-split"),
		fixed(stages.CPUExperts(), "layers by the memory of the GPUs, the experts of the fewest first layers on the CPU that fit", "llama.cpp: --n-cpu-moe"),
		fixed(stages.TorchTitan(), "an even number of layers a stage, embedding and output counted as layers", "torchtitan: generate_llm_fqn_per_model_part"),
		fixed(listsched.UnitHEFT(), "HEFT on chains, segments and cells, the best kept", "Topcuoglu, Hariri, Wu 2002"),
		fixed(listsched.UnitETF(), "ETF on chains, segments and cells, the best kept", "Hwang, Chow, Anger, Lee 1989"),
		fixed(listsched.MTOPO(), "ops in topological order fill one device after the other", "Baechi (SoCC 2020): m-TOPO"),
		fixed(listsched.METF(), "earliest start among the devices that have room", "Baechi (SoCC 2020): m-ETF"),
		fixed(listsched.MSCT(), "earliest start, devices kept for the favourite child of a linear program", "Baechi (SoCC 2020): m-SCT"),
		made("the best of random placements of units", "RL-2017: random search", func(o Options) plan.Placer { return rules.RandomBest(o.Level) }),
		made("local search on units, from chains to cells", "", func(o Options) plan.Placer { return local.Placer{Start: o.Device} }),
		made("simulated annealing on units, coarse to fine", "GO 5: simulated annealing", func(o Options) plan.Placer { return annealing(o) }),
		{Name: Guided, Kind: plan.Search, About: "annealing whose moves a network chooses, which learned on other graphs what shortens a step", Source: "REGAL (ICLR 2020): its idea", New: newGuided},
		made("annealing of loads, by the largest, stages of any shape", "", func(o Options) plan.Placer { return balance.Placer{Start: o.Device} }),
		fixed(exact.Exact{}, "branch and bound over all placements and priorities of up to 64 ops; says OPTIMAL when proven", ""),
		made("CP-SAT on the step as jobs and transfers, a relaxation whose bound holds; branch and bound without the library", "Perron et al.: OR-Tools; REGAL: CP-SAT", func(Options) plan.Placer { return exact.CPSAT{} }),
		made("annealing of ops as if transfers never waited, first come first served", "DOPPLER (ICLR 2026): its model", func(o Options) plan.Placer { return uncontended.Placer{Start: o.Device} }),
		fixed(genetic.BRKGA{}, "a genetic algorithm on keys of affinity and priority", "Gonçalves and Resende 2011; REGAL: BRKGA"),
		fixed(genetic.REGAL{}, "BRKGA whose mutants a graph network proposes, trained for two devices", "REGAL (ICLR 2020)"),
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
		withCompanions(made("the same, one policy for all graphs of a comparison; alone on a single graph", "GDP (2019): GDP-batch", func(o Options) plan.Placer {
			c := gdp.Batch()
			c.Level = o.Level
			return gdp.PlacerBatch{Config: c, Companions: o.Companions}
		})),
		{Name: GoOne, Kind: plan.Policy, About: "the learned policy, trained from nothing on the graph at hand", Source: "GO (NeurIPS 2020), GDP (2019)", New: newGoOne},
		{Name: ZeroShot, Kind: plan.Policy, About: "the built-in pretrained policy as it is, the best of 16 samples", Source: "GO 5: generalization", New: func(Options) (plan.Placer, error) {
			p, err := pretrained.Policy()
			return sequential.Placer{Policy: p}, err
		}},
		{Name: FineTuned, Kind: plan.Policy, About: "the built-in pretrained policy after at most 49 steps of learning on the graph at hand", Source: "GO 5: fine-tuning", New: func(Options) (plan.Placer, error) {
			p, err := pretrained.Policy()
			return sequential.Tuner{Policy: p, Config: sequential.DefaultTune(), Sparing: true}, err
		}},
		{Name: FineTunedPPO, Kind: plan.Policy, About: "the built-in pretrained policy after at most 49 steps of PPO through its network on the graph at hand", Source: "GO 5: fine-tuning", New: func(Options) (plan.Placer, error) {
			p, err := pretrained.Policy()
			return sequential.PPOTuner{Policy: p, Config: sequential.DefaultPPO(), Sparing: true}, err
		}},
	}
}

// rows are those of the catalogue that give something within a search's budget. Slow ones take
// a tenth of a second to seconds on a large graph, and rarely begin a search best.
var rows = []row{
	{name: "human", only: layered}, {name: "topological-cut", only: unlayered}, {name: "single", judged: true},
	{name: "pipedream", only: byLoad, judged: true}, {name: "contiguous", only: byLoad, judged: true},
	{name: "tf-default"}, {name: "offload", only: withHost, judged: true}, {name: "roundrobin"}, {name: "random"}, {name: "metis", slow: true}, {name: "scotch", slow: true},
	{name: "listsched"}, {name: "m-sct"}, {name: "heft-units"}, {name: "etf-units"}, {name: "heft", slow: true}, {name: "etf", slow: true},
	{name: ZeroShot}, {name: "random-best", weight: 0.25}, {name: "local", weight: 0.5},
	{name: "balance", weight: 4, only: byLoad}, {name: Uncontended, weight: 4, only: freely},
	{name: "anneal", weight: 4}, {name: Guided, weight: 4, only: byStep, asked: true}, {name: GoOne, weight: 4}, {name: FineTuned, weight: 0.5},
	{name: FineTunedPPO, weight: 0.5, asked: true}, {name: "BRKGA", weight: 1, asked: true}, {name: "REGAL", weight: 1, asked: true, only: onTwo},
}

// annealing returns simulated annealing from where o says.
func annealing(o Options) anneal.Placer {
	a := anneal.Placer{Workers: max(1, o.Workers)}
	if o.Device != nil {
		a.Starts = [][]uint8{o.Device}
		if o.Priority != nil || o.Fusion != nil {
			a.From = []plan.Decision{o.Decision}
		}
	}
	return a
}

// newGuided returns annealing under the built-in networks of moves.
func newGuided(o Options) (plan.Placer, error) {
	place, err := pretrained.Moves(plan.Place)
	if err != nil {
		return nil, err
	}
	all, err := pretrained.Moves(plan.AllTasks)
	if err != nil {
		return nil, err
	}
	a := annealing(o)
	a.Guide, a.JointGuide = place, all
	return a, nil
}
