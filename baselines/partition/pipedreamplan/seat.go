package pipedreamplan

// seat is a stage and the place of its workers among the levels.
type seat struct {
	Stage
	// What a byte of parameters takes to synchronise, and a byte of activations to
	// come from the stage before, in seconds per minibatch.
	sync, transfer float64
}

// part returns layers [from, to) of s on own workers of a level within each of
// the s.Replicas parts of the machine that s has. Replicas are synchronised at
// every level on which there are several, and the slowest level counts. A cut
// within s is crossed at this level, the one before s further out.
func (s seat) part(l Level, from, to, own int) seat {
	p := seat{Stage{from, to, s.Replicas * own}, s.sync, s.transfer}
	p.sync = max(p.sync, 2*float64(own-1)/l.Bandwidth/float64(p.Replicas))
	if from > s.From {
		p.transfer = 2 / l.Bandwidth / float64(s.Replicas)
	}
	return p
}

// Cost is what one stage takes per minibatch, in seconds, at the levels on which
// its replicas and the cut before it lie.
type Cost struct {
	Compute, Sync, Transfer float64 // Transfer: with the stage before
	Parameters              float64 // bytes
}

// cost returns the cost of s.
func (c *Chain) cost(s seat) Cost {
	var x Cost
	for l := s.From; l < s.To; l++ {
		x.Compute += c.Seconds[l]
		x.Parameters += c.Parameters[l]
	}
	x.Compute /= float64(s.Replicas)
	x.Sync = s.sync * x.Parameters
	if s.From > 0 {
		x.Transfer = s.transfer * c.Crossing[s.From-1]
	}
	return x
}

// plan returns the plan of these stages, as slow as the slowest.
func (c *Chain) plan(seats []seat) *Plan {
	p := &Plan{}
	for _, s := range seats {
		x := c.cost(s)
		p.Stages, p.Costs = append(p.Stages, s.Stage), append(p.Costs, x)
		p.Seconds = max(p.Seconds, x.Compute, x.Sync, x.Transfer)
	}
	return p
}

// inOrder returns seats for stages of these replicas, whose workers follow one
// another through the machine as PipeDream's ranks do. A stage whose replicas do
// not divide evenly is synchronised at each level as by groups of the largest's
// size. There are as many groups of the outermost level as are needed.
func inOrder(replicas []int, levels []Level) []seat {
	seats := make([]seat, len(replicas))
	begin, before := 0, 0 // workers: the first of the stage, and of the stage before
	for k, m := range replicas {
		s := seat{Stage: Stage{Replicas: m}}
		end, size := begin+m, 1 // size: workers of a group of the level below
		cut := -1
		for n, l := range levels {
			whole := size * l.Width
			if n == len(levels)-1 {
				whole = end // all workers so far are in one group
			}
			groups, most := spread(begin, end, size, whole)
			s.sync = max(s.sync, 2*float64(most-1)/l.Bandwidth/float64(groups))
			if cut < 0 && before/whole == (end-1)/whole {
				cut = n
			}
			size = whole
		}
		s.transfer = 2 / levels[cut].Bandwidth
		seats[k] = s
		begin, before = end, begin
	}
	return seats
}

// spread returns over how many groups of size workers [begin, end) lie, and the
// most of those that lie in one group of whole workers.
func spread(begin, end, size, whole int) (groups, most int) {
	here, at := 0, -1
	for g := begin / size; g*size < end; g++ {
		if in := g * size / whole; in != at {
			here, at = 0, in
		}
		here++
		groups, most = groups+1, max(most, here)
	}
	return groups, most
}
