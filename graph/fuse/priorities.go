package fuse

// Priorities returns fusion priorities, [N], under which Fuse makes kernels on device, [N], that lie
// within those of kernel, [N], the number of each op's kernel or 0; they are the same where split is
// 0, else so many of them are not whole.
func (r *Rules) Priorities(device []uint8, kernel []int) (priority []uint8, split int) {
	f := NewFuser(r)
	priority = make([]uint8, len(device))
	for u := range device {
		for _, v := range r.FusibleConsumers(int32(u)) {
			if kernel[u] > 0 && kernel[v] == kernel[u] {
				priority[u] = 1
			}
		}
	}
	for again := true; again; { // kernels that grow into others are taken apart
		again = false
		head := f.Fuse(device, priority)
		bad := map[int]bool{}
		for u, h := range head {
			if int32(u) != h && (kernel[u] != kernel[h] || kernel[u] == 0) {
				bad[kernel[u]], bad[kernel[h]] = true, true
			}
		}
		for u, k := range kernel {
			if priority[u] > 0 && bad[k] {
				priority[u], again = Never, true
			}
		}
	}
	of, whole := map[int]int32{}, map[int]bool{}
	for u, h := range f.Fuse(device, priority) {
		k := kernel[u]
		if k == 0 {
			continue
		}
		if first, ok := of[k]; !ok {
			of[k], whole[k] = h, true
		} else if first != h {
			whole[k] = false
		}
	}
	for _, w := range whole {
		if !w {
			split++
		}
	}
	return priority, split
}
