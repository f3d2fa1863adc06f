package genetic

import "slices"

// rank writes into priority, [N], the place of each op by falling keys, [N]; of equals the
// lower op is first. order is scratch.
func rank(keys []float32, order, priority []int32) {
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		switch {
		case keys[a] > keys[b]:
			return -1
		case keys[a] < keys[b]:
			return 1
		}
		return int(a - b)
	})
	for k, i := range order {
		priority[i] = int32(k)
	}
}
