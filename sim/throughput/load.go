package throughput

import "fmt"

// Load is what one device of a placement has to do.
type Load struct {
	Compute, Communication float64 // seconds
	Bytes                  int64   // held at most, or in all where the instance is of Sums
}

// Seconds is the load.
func (l Load) Seconds() float64 { return l.Compute + l.Communication }

// Result is the objective of a placement, with what it is made of.
type Result struct {
	Seconds  float64 // of the most loaded device; +Inf if an op cannot run where it is
	Overflow int64   // bytes above the devices' memories, summed
	Loads    []Load  // [D]
}

// Evaluate returns the loads of the placement with block b on device block[b], [B].
func (x *Instance) Evaluate(block []uint8) Result {
	if len(block) != len(x.Members) {
		panic(fmt.Sprintf("maxload: %d devices for %d blocks", len(block), len(x.Members)))
	}
	j := Result{Loads: make([]Load, len(x.ClassOf))}
	for b, d := range block {
		l := &j.Loads[d]
		l.Compute += x.Classes[x.ClassOf[d]].Seconds[b]
		l.Bytes += x.Size[b]
	}
	for e := range x.Nets {
		var on uint64
		for _, b := range x.Nets[e].Blocks {
			on |= 1 << block[b]
		}
		if on&(on-1) == 0 {
			continue
		}
		for d := range j.Loads {
			if on>>d&1 != 0 && !x.Classes[x.ClassOf[d]].CPU {
				j.Loads[d].Communication += x.Nets[e].Seconds
			}
		}
	}
	if x.pipeline != nil {
		for d, peak := range x.pipeline.clone().peaks(x.Spread(block)) {
			j.Loads[d].Bytes = peak
		}
	}
	for d := range j.Loads {
		j.Seconds = max(j.Seconds, j.Loads[d].Seconds())
		j.Overflow += max(0, j.Loads[d].Bytes-x.Classes[x.ClassOf[d]].Memory)
	}
	return j
}
