package strategy

import "fmt"

// Schedule is the order in which a stage runs the passes of micro-batches.
type Schedule uint8

// Schedules. Bubbles are shares of the step in which a stage of equal stages is idle.
const (
	// OneFOneB runs P-s forward passes on stage s, from 0, then one backward and one
	// forward pass in turn (PipeDream-Flush: Narayanan et al., ICML 2021). It keeps the
	// activations of min(M, P-s) micro-batches; the bubble is (P-1)/(M+P-1).
	OneFOneB Schedule = iota
	// GPipe runs all forward passes, then all backward passes (Huang et al., NeurIPS
	// 2019). It keeps M micro-batches; the bubble is (P-1)/(M+P-1).
	GPipe
	// Interleaved is OneFOneB with V chunks of the model on each stage (Narayanan et al.,
	// SC 2021, section 2.2); the bubble is (P-1)/(V*M+P-1).
	Interleaved
	// Free leaves the order to priorities, those of OneFOneB or, with several chunks, of
	// Interleaved, and keeps as many micro-batches under way as these: P, or 2P.
	Free
	// Unordered leaves the order to priorities, whatever that keeps under way.
	Unordered
	numSchedules
)

var scheduleNames = [numSchedules]string{"1f1b", "gpipe", "interleaved", "free", "unordered"}

func (s Schedule) String() string {
	if s < numSchedules {
		return scheduleNames[s]
	}
	return fmt.Sprintf("Schedule(%d)", uint8(s))
}

// A task is one pass of one micro-batch through one chunk. Chunk c of P*V is on stage
// c mod P.
type task struct {
	micro, chunk int
	backward     bool
}

// WarmUp returns how many forward passes, of one micro-batch through one chunk each, a stage,
// from 0, runs before its first backward pass. It never keeps the activations of more.
//
// Interleaved is as Megatron-LM counts (forward_backward_pipelining_with_interleaving), plus
// the one that its steady state begins with: 2(P-s-1) + (V-1)P + 1 on stage s, and all where
// there are as many micro-batches as stages, a case that later versions of it leave out.
func (s Strategy) WarmUp(stage int) int {
	p, m, v := s.Pipeline, s.MicroBatches, s.Chunks
	switch {
	case s.Schedule == GPipe:
		return m * v
	case v == 1:
		return min(m, p-stage)
	case m == p:
		return m * v
	}
	return min(m*v, 2*(p-stage-1)+(v-1)*p+1)
}

// orders returns the tasks of each stage in the order in which it runs them, [P][2*M*V].
func (s Strategy) orders() [][]task {
	p, m, v := s.Pipeline, s.MicroBatches, s.Chunks
	all := make([][]task, p)
	for stage := range all {
		n := m * v
		warm := s.WarmUp(stage)
		forward := func(k int) task {
			return task{micro: k/(p*v)*p + k%p, chunk: (k%(p*v))/p*p + stage}
		}
		backward := func(k int) task {
			return task{micro: k/(p*v)*p + k%p, chunk: (v-1-(k%(p*v))/p)*p + stage, backward: true}
		}
		if v == 1 {
			forward = func(k int) task { return task{micro: k, chunk: stage} }
			backward = func(k int) task { return task{micro: k, chunk: stage, backward: true} }
		}
		list := make([]task, 0, 2*n)
		for k := range warm {
			list = append(list, forward(k))
		}
		for k := range n {
			list = append(list, backward(k))
			if warm+k < n {
				list = append(list, forward(warm+k))
			}
		}
		all[stage] = list
	}
	return all
}

// Turns returns, for each stage, the turn of every pass of every micro-batch in its order:
// [P][2*M*V], where (2*m+b)*V+v is the pass of micro-batch m, forward for b = 0 and backward
// for 1, through the v-th chunk of the stage.
func (s Strategy) Turns() [][]int32 {
	turns := make([][]int32, s.Pipeline)
	for stage, list := range s.orders() {
		turns[stage] = make([]int32, 2*s.MicroBatches*s.Chunks)
		for turn, t := range list {
			k := 2 * t.micro
			if t.backward {
				k++
			}
			turns[stage][k*s.Chunks+t.chunk/s.Pipeline] = int32(turn)
		}
	}
	return turns
}

// underWay is the number of micro-batches that Free keeps under way: as many as may be by the order
// that its priorities are of.
func (s Strategy) underWay() int {
	if s.Chunks > 1 {
		return 2 * s.Pipeline
	}
	return s.Pipeline
}

// sequence returns all tasks in an order in which each follows those it needs: of its
// stage, of the chunk before it (behind it for backward passes).
func (s Strategy) sequence() []task {
	orders := s.orders()
	chunks := s.Pipeline * s.Chunks
	done := map[task]bool{}
	total := 2 * chunks * s.MicroBatches
	out := make([]task, 0, total)
	next := make([]int, len(orders))
	for len(out) < total {
		before := len(out)
		for stage, list := range orders {
			for next[stage] < len(list) {
				t := list[next[stage]]
				need := task{t.micro, t.chunk - 1, false}
				ready := t.chunk == 0
				if t.backward {
					need = task{t.micro, t.chunk + 1, true}
					ready = false
					if t.chunk == chunks-1 {
						need = task{t.micro, t.chunk, false}
					}
				}
				if !ready && !done[need] {
					break
				}
				done[t] = true
				out = append(out, t)
				next[stage]++
			}
		}
		if len(out) == before {
			panic(fmt.Sprintf("strategy: the %v schedule of %d stages and %d micro-batches does not end", s.Schedule, s.Pipeline, s.MicroBatches))
		}
	}
	return out
}
