package sched

import "math"

// BottomLevels returns for each op the longest sum of times on a path from it to
// an end, its own included, [N].
func (p *Problem) BottomLevels() []float64 {
	level := make([]float64, p.N())
	for k := p.N() - 1; k >= 0; k-- {
		i := p.order[k]
		for t := p.outAt[i]; t < p.outAt[i+1]; t++ {
			for _, v := range p.Consumers(t) {
				level[i] = max(level[i], level[v])
			}
		}
		level[i] += p.time[i]
	}
	return level
}

// CriticalPath returns the longest sum of times on a path.
func (p *Problem) CriticalPath() (longest float64) {
	for _, x := range p.BottomLevels() {
		longest = max(longest, x)
	}
	return longest
}

// Work returns the sum of all times.
func (p *Problem) Work() (sum float64) {
	for _, x := range p.time {
		sum += x
	}
	return sum
}

// LowerBound returns a run time below which no schedule falls. A path runs one op
// after the other whatever their devices; all work shared evenly takes Work/D.
// Where all times are whole numbers and transfers take none, every instant of a
// schedule is a whole number, so the bound is rounded up.
func (p *Problem) LowerBound() float64 {
	share := p.Work() / float64(p.D())
	whole := p.machine.Bandwidth == 0
	for _, x := range p.time {
		whole = whole && x == math.Trunc(x) && x < 1<<40
	}
	if whole {
		share = math.Ceil(share)
	}
	return max(p.CriticalPath(), share)
}

// MemoryBound returns a peak below which no schedule falls: some op's inputs and
// outputs are together on its device.
func (p *Problem) MemoryBound() (bound int64) {
	for i := range p.N() {
		bound = max(bound, p.Memory(int32(i)))
	}
	return bound
}
