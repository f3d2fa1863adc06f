package pipedreamplan

import (
	"fmt"
	"math"
)

// Cut returns the best cut of c into stages of these replicas on levels, innermost
// first: what a configuration that names replicas alone comes to at best. Workers
// follow one another through the machine, or a group of stages is repeated in
// several groups of workers, as Solve may have it. The outermost level has as many
// groups as the replicas need.
func Cut(c *Chain, replicas []int, levels []Level) (*Plan, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if err := validLevels(levels); err != nil {
		return nil, err
	}
	if len(replicas) == 0 || len(replicas) > c.NumLayers() {
		return nil, fmt.Errorf("%d stages of %d layers", len(replicas), c.NumLayers())
	}
	for k, m := range replicas {
		if m < 1 {
			return nil, fmt.Errorf("stage %d has %d replicas", k, m)
		}
	}
	best := cutSeats(c, inOrder(replicas, levels))
	if len(levels) > 1 {
		if p := nest(c, replicas, levels); p != nil && p.Seconds < best.Seconds {
			best = p
		}
	}
	return best, nil
}

// cutSeats returns the best cut of c into stages that lie as seats, whose layers
// are not read.
func cutSeats(c *Chain, seats []seat) *Plan {
	n := c.NumLayers()
	seconds, parameters := prefix(c.Seconds), prefix(c.Parameters)
	// best[j] of the stages so far on layers 0..j-1.
	best := make([]float64, n+1)
	for j := 1; j <= n; j++ {
		best[j] = math.Inf(1)
	}
	from := make([][]int, len(seats))
	for k, s := range seats {
		next := make([]float64, n+1)
		from[k] = make([]int, n+1)
		next[0] = math.Inf(1)
		for j := 1; j <= n; j++ {
			next[j] = math.Inf(1)
			for i := range j {
				v := max((seconds[j]-seconds[i])/float64(s.Replicas), s.sync*(parameters[j]-parameters[i]), best[i])
				if i > 0 {
					v = max(v, s.transfer*c.Crossing[i-1])
				}
				if v < next[j] {
					next[j], from[k][j] = v, i
				}
			}
		}
		best = next
	}
	for k, j := len(seats)-1, n; k >= 0; k-- {
		seats[k].From, seats[k].To = from[k][j], j
		j = from[k][j]
	}
	p := c.plan(seats)
	p.Seconds = best[n]
	return p
}
