package serving

import "placer/graph/strategy"

// divisions returns the ways to divide a replica among up to n devices that are tried: split products,
// stages, both, and for a mixture of experts ranks that share them out. Numbers of devices
// are those that divide n.
func divisions(n int, mixture bool) (all []strategy.Strategy) {
	for g := 1; g <= n; g++ {
		if n%g != 0 {
			continue
		}
		for stages := 1; stages <= g; stages++ {
			if g%stages == 0 {
				all = append(all, split(stages, g/stages))
			}
		}
		if g > 1 && mixture {
			s := strategy.Single(1)
			s.Data, s.Experts = g, g
			all = append(all, s)
		}
	}
	return all
}

// split is a pipeline of stages whose products are split in parts.
func split(stages, parts int) strategy.Strategy {
	s := strategy.Single(stages)
	s.Schedule, s.Pipeline, s.Tensor = strategy.OneFOneB, stages, parts
	return s
}

// unit returns the sequences that a batch is a multiple of under s.
func unit(s strategy.Strategy) int64 { return int64(s.Data * s.Pipeline) }
