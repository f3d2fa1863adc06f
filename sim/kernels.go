package sim

// OpShares writes into share, [N], what each op contributes to the time of the
// kernels of the last EvaluateFused that was given a fusion: a kernel's seconds are dealt
// out to its ops in proportion to what they take alone.
func (s *Simulator) OpShares(share []float64) {
	f := s.fused
	k := &f.k
	for i := range k.n {
		ops := k.ops[k.at[i]:k.at[i+1]]
		own := s.seconds[f.device[i]]
		if len(ops) == 1 {
			share[ops[0]] = own[ops[0]]
			continue
		}
		sum := 0.0
		for _, m := range ops {
			sum += own[m]
		}
		if sum == 0 {
			sum = 1
		}
		scale := f.run.ops[i].seconds / sum
		for _, m := range ops {
			share[m] = own[m] * scale
		}
	}
}
