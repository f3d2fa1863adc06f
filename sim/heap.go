package sim

// heap is a binary heap.
type heap[E interface{ before(E) bool }] []E

func (h *heap[E]) push(x E) {
	*h = append(*h, x)
	a := *h
	for i := len(a) - 1; i > 0 && a[i].before(a[(i-1)/2]); i = (i - 1) / 2 {
		a[i], a[(i-1)/2] = a[(i-1)/2], a[i]
	}
}

// pop removes and returns the first of a heap that is not empty.
func (h *heap[E]) pop() E {
	a := *h
	top := a[0]
	a[0] = a[len(a)-1]
	a = a[:len(a)-1]
	*h = a
	for i := 0; ; {
		c := 2*i + 1
		if c+1 < len(a) && a[c+1].before(a[c]) {
			c++
		}
		if c >= len(a) || !a[c].before(a[i]) {
			return top
		}
		a[i], a[c] = a[c], a[i]
		i = c
	}
}
