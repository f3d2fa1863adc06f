package strategies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"placer/graph/strategy"
	"placer/hw"
)

// Ranks of a mesh are neighbours in the order of devices. Where devices differ, which of them are the
// first stage of a pipeline decides what each stage can take, and which activations pass slow links.
// Devices with the same figures on one host form a group, whose members stay together.

// mostOrders bounds the orders of groups that are looked at: all those of four groups. Of more, each
// rotation of the machine's order and of its reverse is one, as far as the bound goes.
const mostOrders = 24

// mostSimulated bounds the orders that a strategy is simulated in, the machine's own among them: all
// those of three groups. Of more, those whose slowest stage is least.
const mostSimulated = 6

// orders returns the orders of j's devices that are looked at, [orders][D], the machine's own first.
func (j *Judge) orders() [][]int {
	class := j.classes()
	all := [][]int{j.own()}
	if slices.Max(class) == 0 {
		return all
	}
	host := j.hostOf()
	groups := groupsOf(class, host)
	seen := map[string]bool{}
	add := func(order []int) {
		list := slices.Concat(pick(groups, order)...)
		if k := shape(list, class, host); !seen[k] && len(all) < mostOrders {
			seen[k] = true
			if !slices.Equal(list, all[0]) {
				all = append(all, list)
			}
		}
	}
	order := make([]int, len(groups))
	for k := range order {
		order[k] = k
	}
	seen[shape(all[0], class, host)] = true
	if len(groups) <= 4 {
		permute(order, 0, add)
		return all
	}
	for range groups {
		add(order)
		back := slices.Clone(order)
		slices.Reverse(back)
		add(back)
		order = append(order[1:len(order):len(order)], order[0])
	}
	return all
}

// own is the machine's own order.
func (j *Judge) own() []int {
	all := make([]int, j.Machine.NumDevices())
	for k := range all {
		all[k] = k
	}
	return all
}

// hostOf returns the host of each device, [D].
func (j *Judge) hostOf() []int {
	host := make([]int, j.Machine.NumDevices())
	for h, ds := range j.hosts(j.own()) {
		for _, d := range ds {
			host[d] = h
		}
	}
	return host
}

// classes returns the class of each device, [D], from 0: those of a class have the same figures.
func (j *Judge) classes() []int {
	m, most := j.Machine, -1
	class := make([]int, m.NumDevices())
	for d := range class {
		if k := slices.IndexFunc(m.Devices[:d], func(e hw.Device) bool { return e.SameFigures(&m.Devices[d]) }); k >= 0 {
			class[d] = class[k]
		} else {
			most++
			class[d] = most
		}
	}
	return class
}

// groupsOf returns the devices of each class on each host, in the order of their first.
func groupsOf(class, host []int) (groups [][]int) {
	for d := range class {
		at := slices.IndexFunc(groups, func(g []int) bool { return class[g[0]] == class[d] && host[g[0]] == host[d] })
		if at < 0 {
			at, groups = len(groups), append(groups, nil)
		}
		groups[at] = append(groups[at], d)
	}
	return groups
}

// shape says an order by classes and hosts, these in the order in which they come: orders of one shape
// put devices alike in the same places.
func shape(order, class, host []int) string {
	var text strings.Builder
	names := map[int]int{}
	for _, d := range order {
		if _, ok := names[host[d]]; !ok {
			names[host[d]] = len(names)
		}
		fmt.Fprintf(&text, "%d@%d ", class[d], names[host[d]])
	}
	return text.String()
}

func pick(groups [][]int, order []int) (all [][]int) {
	for _, k := range order {
		all = append(all, groups[k])
	}
	return all
}

// permute calls f with every permutation of a[from:].
func permute(a []int, from int, f func([]int)) {
	if from == len(a) {
		f(a)
		return
	}
	for k := from; k < len(a); k++ {
		a[from], a[k] = a[k], a[from]
		permute(a, from+1, f)
		a[from], a[k] = a[k], a[from]
	}
}

// in returns a judge of steps on j's devices in another order.
func (j *Judge) in(order []int) (*Judge, error) {
	c := j.clone()
	c.Machine, c.base, c.order = j.Machine.Keep(order), j.Machine, order
	if j.streamed != nil {
		var err error
		if c.streamed, err = withStreams(c.Machine); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// ordered reports whether it matters to s in which order unequal devices are.
func ordered(s strategy.Strategy) bool { return s.Pipeline > 1 || s.Data > 1 && s.Tensor > 1 }

// on returns the judge of the order of r.
func (x *Comparison) on(r *Result) (*Judge, error) {
	for k, order := range x.orders {
		if r.Order != nil && slices.Equal(order, r.Order) {
			return x.under(k)
		}
	}
	return x.judge, nil
}

// under returns the judge of order k.
func (x *Comparison) under(k int) (*Judge, error) {
	if k == 0 {
		return x.judge, nil
	}
	if x.judges == nil {
		x.judges = make([]*Judge, len(x.orders))
	}
	var err error
	if x.judges[k] == nil {
		x.judges[k], err = x.judge.in(x.orders[k])
	}
	return x.judges[k], err
}

// promising returns the orders, but the first, that s is simulated in.
func (x *Comparison) promising(s strategy.Strategy) (ks []int, err error) {
	if !ordered(s) {
		return nil, nil
	}
	slowest := make([]float64, len(x.orders))
	for k := 1; k < len(x.orders); k++ {
		ks = append(ks, k)
		if len(x.orders) <= mostSimulated {
			continue
		}
		j, err := x.under(k)
		if err != nil {
			return nil, err
		}
		if slowest[k], err = x.models.slowestStage(j, s); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(ks, func(a, b int) int { return cmp.Compare(slowest[a], slowest[b]) })
	return ks[:min(len(ks), mostSimulated-1)], nil
}
