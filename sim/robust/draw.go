package robust

import (
	"math"
	"math/rand/v2"

	"placer/graph"
	"placer/hw"
)

// dimensions is the number of factors of a machine: one for each class of ops on each
// device and one for each link.
func dimensions(m *hw.Machine) int { return m.NumDevices()*graph.NumClasses + len(m.Links) }

// sigma is the standard deviation of the logarithm of a factor.
func (c Config) sigma() float64 { return c.Error * math.Sqrt(math.Pi/2) }

// independent draws the n factors of the k-th machine.
func independent(c Config, k, n int) []float64 {
	rng := rand.New(rand.NewPCG(c.Seed, uint64(k)<<8|0x72)) // "r"
	factor := make([]float64, n)
	for j := range factor {
		factor[j] = math.Exp(c.sigma() * rng.NormFloat64())
	}
	return factor
}

// stratified draws the n factors of every machine, [c.Machines][n]: of each factor, one
// value from each of c.Machines strata of equal probability.
func stratified(c Config, n int) [][]float64 {
	m := c.Machines
	draws := make([][]float64, m)
	for k := range draws {
		draws[k] = make([]float64, n)
	}
	for j := range n {
		rng := rand.New(rand.NewPCG(c.Seed, uint64(j)<<8|0x6c)) // "l"
		for k, stratum := range rng.Perm(m) {
			p := (float64(stratum) + rng.Float64()) / float64(m)
			p = min(max(p, 1e-12), 1-1e-12)
			draws[k][j] = math.Exp(c.sigma() * math.Sqrt2 * math.Erfinv(2*p-1))
		}
	}
	return draws
}
