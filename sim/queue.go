package sim

import "math/bits"

// rankQueue is a set of ranks 0..N-1 that gives the lowest: a bit for each rank
// and two levels of summary, of which the upper is searched in order.
type rankQueue struct {
	bit, word, block []uint64
}

func newRankQueue(n int) rankQueue {
	return rankQueue{make([]uint64, n>>6+1), make([]uint64, n>>12+1), make([]uint64, n>>18+1)}
}

func (q *rankQueue) push(r int32) {
	u := uint32(r)
	q.bit[u>>6] |= 1 << (u & 63)
	q.word[u>>12] |= 1 << (u >> 6 & 63)
	q.block[u>>18] |= 1 << (u >> 12 & 63)
}

// pop removes and returns the lowest rank, or none.
func (q *rankQueue) pop() int32 {
	for k, block := range q.block {
		if block == 0 {
			continue
		}
		a := k<<6 | bits.TrailingZeros64(block)
		word := q.word[a]
		b := a<<6 | bits.TrailingZeros64(word)
		bit := q.bit[b]
		c := b<<6 | bits.TrailingZeros64(bit)
		bit &= bit - 1
		q.bit[b] = bit
		if bit == 0 {
			word &= word - 1
			q.word[a] = word
			if word == 0 {
				q.block[k] = block & (block - 1)
			}
		}
		return int32(c)
	}
	return none
}

// arrivalQueue serves ops in the order of (ready time, id). Ready times are
// pushed in ascending order. Each op enters once, so there is no wrapping.
type arrivalQueue struct {
	ops        []int32 // of the simulator's buffer, as many as the device has ops
	head, tail int32
	same       int32   // first entry that was pushed with the latest ready time
	time       float64 // latest ready time
}

func (q *arrivalQueue) push(op int32, ready float64) {
	if ready > q.time {
		q.same, q.time = q.tail, ready
	}
	low := max(q.same, q.head)
	k := q.tail
	for ; k > low && q.ops[k-1] > op; k-- {
		q.ops[k] = q.ops[k-1]
	}
	q.ops[k] = op
	q.tail++
}

func (q *arrivalQueue) pop() int32 {
	if q.head == q.tail {
		return none
	}
	q.head++
	return q.ops[q.head-1]
}
