package main

// row is a line of results.csv, whose columns are in the order of the fields. Times are
// in seconds, reductions against the human expert; 0 stands for what is not known.
type row struct {
	Workload string  `csv:"workload"`
	Devices  int     `csv:"devices"`
	Policy   string  `csv:"policy"`
	Human    float64 `csv:"human_s"`
	Search   float64 `csv:"search_s"` // recorded, experiments/table2
	Greedy   float64 `csv:"greedy_s"`
	// Of the best of 16 samples: the median over the seeds, the lowest, the highest.
	Best      float64 `csv:"best_of_16_s"`
	BestLow   float64 `csv:"best_of_16_low_s"`
	BestHigh  float64 `csv:"best_of_16_high_s"`
	Tuned     float64 `csv:"fine_tuned_s"`           // median over the seeds
	TunedTook float64 `csv:"fine_tuned_cpu_seconds"` // of all threads, the most of all seeds
	Took      float64 `csv:"zero_shot_cpu_seconds"`  // of features, 16 samples and their evaluation
	Distance  float64 `csv:"distance"`
	Reach     float64 `csv:"reach"`
	// Scratch is what the policy that was trained from scratch came to in the recorded
	// search.
	Scratch            float64 `csv:"from_scratch_s"`
	TunedEvaluations   float64 `csv:"fine_tuned_evaluations"` // the most of all seeds
	ScratchEvaluations float64 `csv:"from_scratch_evaluations"`
	SameAt             float64 `csv:"same_at"` // evaluations at which fine-tuning was as good, median over the seeds; 0: it was not
	TunedLow           float64 `csv:"fine_tuned_low_s"`
	TunedHigh          float64 `csv:"fine_tuned_high_s"`
	TunedSeeds         float64 `csv:"fine_tuned_seeds"`
	Untrained          float64 `csv:"untrained_s"`           // zero-shot of a policy that follows its heuristic priors alone, the median over the seeds
	Longer             float64 `csv:"search_five_minutes_s"` // the search of five minutes, experiments/table2/five-minutes
	// Of 16 placements made and all judged: the policy's, and those that it would make had
	// it learned nothing but which priors to follow.
	Direct       float64 `csv:"direct_16_s"`
	DirectPriors float64 `csv:"direct_16_priors_s"`
	DirectTook   float64 `csv:"direct_16_cpu_seconds"`
}

// whole reports whether r has been judged.
func (r *row) whole(t tuning) bool {
	return r.Greedy > 0 && r.Direct > 0 && (t.steps == 0 || r.TunedSeeds >= float64(t.seeds))
}
