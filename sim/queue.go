package sim

import "math/bits"

// rankQueue is a set of ranks 0..N-1 that knows the lowest: a bit for each rank
// and two levels of summary, of which the upper is searched in order.
type rankQueue struct {
	lowest           int32 // or empty
	bit, word, block []uint64
}

// empty is above every rank.
const empty = 1<<31 - 1

func newRankQueue(n int) rankQueue {
	return rankQueue{empty, make([]uint64, n>>6+1), make([]uint64, n>>12+1), make([]uint64, n>>18+1)}
}

func (q *rankQueue) push(r int32) {
	u := uint32(r)
	q.bit[u>>6] |= 1 << (u & 63)
	q.word[u>>12] |= 1 << (u >> 6 & 63)
	q.block[u>>18] |= 1 << (u >> 12 & 63)
	q.lowest = min(q.lowest, r)
}

// pop removes and returns the lowest rank of a queue that is not empty.
func (q *rankQueue) pop() int32 {
	r := q.lowest
	u := uint32(r)
	b := u >> 6
	bit := q.bit[b]
	bit &= bit - 1
	q.bit[b] = bit
	if bit == 0 {
		a := u >> 12
		word := q.word[a]
		word &= word - 1
		q.word[a] = word
		if word == 0 {
			c := u >> 18
			block := q.block[c]
			block &= block - 1
			q.block[c] = block
			for ; block == 0; block = q.block[c] {
				if c++; int(c) == len(q.block) {
					q.lowest = empty
					return r
				}
			}
			a = c<<6 | uint32(bits.TrailingZeros64(block))
			word = q.word[a]
		}
		b = a<<6 | uint32(bits.TrailingZeros64(word))
		bit = q.bit[b]
	}
	q.lowest = int32(b<<6 | uint32(bits.TrailingZeros64(bit)))
	return r
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

// pop removes and returns the first op, or none.
func (q *arrivalQueue) pop() int32 {
	if q.head == q.tail {
		return none
	}
	q.head++
	return q.ops[q.head-1]
}
