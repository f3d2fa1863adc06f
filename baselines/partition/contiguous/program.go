package contiguous

import (
	"context"
	"fmt"
	"math"
)

// program is the dynamic program on one lattice.
type program struct {
	b *blocks
	l *lattice
	// limit is a load that is known to be reached: only what is below it is kept.
	limit float64

	// A state says how many devices of each class are in use; stride[c] is what one
	// more of class c adds to it.
	states int
	stride []int
	used   [][]int32 // [states][C]
	// left[s] is the most accelerator work, in seconds of class 0, that the devices
	// not yet in use in state s can do below the limit; +Inf where unknown.
	left []float64
	work []float64 // [I] seconds of class 0 of the blocks outside the downset

	best []float64 // [I*states] least maximum load
	from []int32   // [I*states] downset before
	by   []int8    // [I*states] class of the last stage

	// The walk: the difference of the downset reached and the one it started from.
	stamp   []int32 // [I] start of the last walk that came here, plus one
	start   int32
	live    []int32   // states of the start below the limit
	compute []float64 // [C]
	bytes   int64
	cut     float64
	count   []int32 // [nets] blocks in the difference
	path    []step
	before  []float64 // [path,C] compute before each step
	pairs   int64
	looked  int64 // at the context, after so many pairs
}

// step is a downset on the walk's path.
type step struct {
	at, next int32 // downset, and the growth to try next
	block    int32 // added to come here; -1 at the start
	cut      float64
}

// maxStates bounds in how many ways devices can be in use, of which a row of the table has
// an entry each. It is reached by twelve devices that all differ.
const maxStates = 4096

// newProgram prepares the program. It reports devices of too many kinds.
func newProgram(b *blocks, l *lattice, limit float64) (*program, error) {
	p := &program{b: b, l: l, limit: limit, states: 1, count: make([]int32, len(b.Nets)), compute: make([]float64, len(b.Classes))}
	for _, c := range b.Classes {
		p.stride = append(p.stride, p.states)
		if p.states *= len(c.Devices) + 1; p.states > maxStates {
			return nil, fmt.Errorf("contiguous splits: %d devices of %d kinds can be in use in more than %d ways, which is as many as are told apart", b.NumDevices(), len(b.Classes), maxStates)
		}
	}
	for s := range p.states {
		u := make([]int32, len(b.Classes))
		for c := range u {
			u[c] = int32(s / p.stride[c] % (len(b.Classes[c].Devices) + 1))
		}
		p.used = append(p.used, u)
	}
	p.room()
	n := l.size()
	p.best, p.from, p.by = make([]float64, n*p.states), make([]int32, n*p.states), make([]int8, n*p.states)
	for k := range p.best {
		p.best[k] = math.Inf(1)
	}
	p.stamp = make([]int32, n)
	p.work = make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		if k := l.at[i]; k < l.at[i+1] {
			p.work[i] = p.work[l.to[k]] + b.Classes[0].Seconds[l.block[k]]
		}
	}
	return p, nil
}

// room fills left: a device of class c with less than limit to do takes at most
// limit times the largest ratio of a block's time on class 0 to that on c.
func (p *program) room() {
	ratio := make([]float64, len(p.b.Classes))
	for c := range ratio {
		for b, t := range p.b.Classes[c].Seconds {
			switch a := p.b.Classes[0].Seconds[b]; {
			case a == 0 || math.IsInf(t, 1): // it takes nothing of this block
			case t == 0:
				ratio[c] = math.Inf(1)
			default:
				ratio[c] = max(ratio[c], a/t)
			}
		}
	}
	p.left = make([]float64, p.states)
	for s := range p.left {
		for c := range ratio {
			if free := len(p.b.Classes[c].Devices) - int(p.used[s][c]); free > 0 && ratio[c] > 0 {
				p.left[s] += p.limit * ratio[c] * float64(free)
			}
		}
		p.left[s] *= 1 + 1e-9
	}
}

// lookEvery is how many entries of the table are looked at between two looks at the context.
const lookEvery = 1 << 22

// run fills the table. ok is false if ctx ended before.
func (p *program) run(ctx context.Context) (ok bool) {
	p.best[0] = 0
	for i := range int32(p.l.size()) {
		if i&255 == 0 || (p.pairs-p.looked)*int64(p.states) > lookEvery {
			if p.looked = p.pairs; ctx.Err() != nil {
				return false
			}
		}
		p.live = p.live[:0]
		for s := range int32(p.states) {
			if v := p.best[int(i)*p.states+int(s)]; v < p.limit && p.work[i] <= p.left[s] {
				p.live = append(p.live, s)
			}
		}
		if len(p.live) > 0 {
			p.walk(i)
		}
	}
	return true
}

// walk visits every downset above i whose difference from i could be one stage.
func (p *program) walk(i int32) {
	p.start = i
	p.stamp[i] = i + 1
	p.path = append(p.path[:0], step{at: i, next: p.l.at[i], block: -1})
	p.bytes, p.cut = 0, 0
	clear(p.compute)
	p.before = append(p.before[:0], p.compute...)
	for len(p.path) > 0 {
		top := &p.path[len(p.path)-1]
		if top.next == p.l.at[top.at+1] {
			p.back(top)
			continue
		}
		k := top.next
		top.next++
		to := p.l.to[k]
		if p.stamp[to] == i+1 {
			continue
		}
		p.stamp[to] = i + 1
		x := step{at: to, next: p.l.at[to], block: p.l.block[k], cut: p.cut}
		p.path, p.before = append(p.path, x), append(p.before, p.compute...)
		p.add(x.block)
		if !p.offer(to) { // no larger difference can be a stage either
			p.path[len(p.path)-1].next = p.l.at[to+1]
		}
	}
}

// add puts block b into the difference.
func (p *program) add(b int32) {
	for c := range p.compute {
		p.compute[c] += p.b.Classes[c].Seconds[b]
	}
	p.bytes += p.b.Size[b]
	for _, e := range p.b.NetsOf[b] {
		p.count[e]++
		switch p.count[e] {
		case 1:
			p.cut += p.b.Nets[e].Seconds
		case int32(len(p.b.Nets[e].Blocks)):
			p.cut -= p.b.Nets[e].Seconds
		}
	}
}

// back leaves the top of the path.
func (p *program) back(top *step) {
	last := len(p.before) - len(p.compute)
	if b := top.block; b >= 0 {
		copy(p.compute, p.before[last:])
		p.cut = top.cut
		p.bytes -= p.b.Size[b]
		for _, e := range p.b.NetsOf[b] {
			p.count[e]--
		}
	}
	p.path, p.before = p.path[:len(p.path)-1], p.before[:last]
}

// offer makes the difference the last stage of downset to, on every class. It
// reports whether a larger difference could be a stage.
func (p *program) offer(to int32) (more bool) {
	p.pairs++
	for c := range p.b.Classes {
		class := &p.b.Classes[c]
		if p.compute[c] >= p.limit || p.bytes > class.Memory {
			continue
		}
		more = true
		load := p.compute[c]
		if !class.CPU {
			load += p.cut
		}
		if load >= p.limit {
			continue
		}
		for _, s := range p.live {
			if int(p.used[s][c]) == len(class.Devices) {
				continue
			}
			v := max(load, p.best[int(p.start)*p.states+int(s)])
			k := int(to)*p.states + int(s) + p.stride[c]
			if v < p.best[k] && p.work[to] <= p.left[int(s)+p.stride[c]] {
				p.best[k], p.from[k], p.by[k] = v, p.start, int8(c)
			}
		}
	}
	return more
}

// answer returns the least maximum load below the limit and the device of each
// block; ok is false where there is none.
func (p *program) answer() (seconds float64, block []uint8, ok bool) {
	last := p.l.size() - 1
	best, seconds := -1, math.Inf(1)
	for s := range p.states {
		if v := p.best[last*p.states+s]; v < seconds {
			best, seconds = s, v
		}
	}
	if best < 0 {
		return 0, nil, false
	}
	block = make([]uint8, p.b.NumBlocks())
	for i, s := int32(last), best; i != 0; {
		k := int(i)*p.states + s
		c := p.by[k]
		d := p.b.Classes[c].Devices[p.used[s][c]-1]
		for _, b := range p.l.between(p.from[k], i) {
			block[b] = uint8(d)
		}
		i, s = p.from[k], s-p.stride[c]
	}
	return seconds, block, true
}
