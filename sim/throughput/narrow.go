package throughput

import "math"

// narrow returns an order of n sets in which few nets are open at a time: always
// the set that leaves the fewest open. It is nil where they are too many.
func narrow(n int, nets []Net) []int32 {
	if n > packSets {
		return nil
	}
	of := make([][]int32, n)
	left := make([]int, len(nets)) // sets that are not in the order
	for e, net := range nets {
		left[e] = len(net.Blocks)
		for _, s := range net.Blocks {
			of[s] = append(of[s], int32(e))
		}
	}
	done := make([]bool, n)
	var order []int32
	open := 0
	for range n {
		best, least := int32(-1), math.MaxInt
		for s := range int32(n) {
			if done[s] {
				continue
			}
			change, near := 0, 1
			for _, e := range of[s] {
				switch {
				case left[e] == len(nets[e].Blocks):
					change++
				case left[e] == 1:
					change, near = change-1, 0
				default:
					near = 0
				}
			}
			if score := 2*change + near; score < least {
				best, least = s, score
			}
		}
		done[best] = true
		order = append(order, best)
		for _, e := range of[best] {
			if left[e] == len(nets[e].Blocks) {
				open++
			}
			if left[e]--; left[e] == 0 {
				open--
			}
		}
		if open > packOpen {
			return nil
		}
	}
	return order
}
