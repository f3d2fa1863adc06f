package sched

// stepTime steps through the sequence and returns the run time.
func (e *Evaluator) stepTime() float64 {
	p, n := e.p, int32(e.p.N())
	free, end := e.free, e.end
	clear(free)
	bandwidth := p.machine.Bandwidth
	for _, x := range e.sequence {
		if x < n {
			at := e.device[x]
			t := free[at]
			for _, u := range p.after[p.afterAt[x]:p.afterAt[x+1]] {
				t = max(t, end[u])
			}
			t += p.time[x]
			end[x], free[at] = t, t
			continue
		}
		m := e.moves[x-n]
		if m.control {
			continue
		}
		from := e.device[p.producer[m.tensor]]
		t := max(free[from], free[m.to])
		if bandwidth > 0 {
			t += float64(p.size[m.tensor]) / bandwidth
		}
		free[from], free[m.to] = t, t
	}
	longest := 0.0
	for _, t := range free {
		longest = max(longest, t)
	}
	return longest
}

// stepMemory steps through the sequence and returns the peak over devices.
func (e *Evaluator) stepMemory() int64 {
	p, n, d := e.p, int32(e.p.N()), int32(e.p.D())
	held, peak, users := e.held, e.peak, e.users
	clear(held)
	clear(peak)
	clear(users)
	for t := range int32(p.T()) {
		for _, v := range p.use[p.useAt[t]:p.useAt[t+1]] {
			users[t*d+int32(e.device[v])]++
		}
	}
	for _, x := range e.sequence {
		if x >= n {
			t := e.moves[x-n].tensor
			users[t*d+int32(e.device[p.producer[t]])]++
		}
	}
	read := func(t, at int32) {
		if users[t*d+at]--; users[t*d+at] == 0 {
			held[at] -= p.size[t]
		}
	}
	for _, x := range e.sequence {
		if x >= n {
			m := e.moves[x-n]
			held[m.to] += p.size[m.tensor]
			peak[m.to] = max(peak[m.to], held[m.to])
			read(m.tensor, int32(e.device[p.producer[m.tensor]]))
			continue
		}
		at := int32(e.device[x])
		for t := p.outAt[x]; t < p.outAt[x+1]; t++ {
			held[at] += p.size[t]
		}
		peak[at] = max(peak[at], held[at])
		for _, t := range p.in[p.inAt[x]:p.inAt[x+1]] {
			read(t, at)
		}
		for t := p.outAt[x]; t < p.outAt[x+1]; t++ {
			if users[t*d+at] == 0 {
				held[at] -= p.size[t]
			}
		}
	}
	most := int64(0)
	for _, b := range peak {
		most = max(most, b)
	}
	return most
}
