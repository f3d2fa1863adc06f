package exchange

import (
	"sync"

	"placer/graph/fuse"
	"placer/plan"
)

// maxPlans is how many plans a memory holds; then it forgets all.
const maxPlans = 1 << 18

// Memory is the plans of one problem that searches have evaluated, with their scores. It
// serves one goroutine.
//
// Plans are told apart by what a step depends on: the devices of ops, the kernels, and the
// order of any two ops of a device of which neither waits for the other.
type Memory struct {
	fuser *fuse.Fuser // nil where fusion is not decided
	pairs [][2]int32
	plans map[string]*visited
	key   []byte
}

// visited is a plan that has been evaluated.
type visited struct {
	plan.Score
	ended bool // no plan within two changes is better
}

// newMemory returns an empty memory for plans of p.
func newMemory(p *plan.Problem) *Memory {
	m := &Memory{plans: map[string]*visited{}}
	if p.Decides(plan.Schedule) {
		m.pairs = unordered(p.Graph)
	}
	if p.Decides(plan.Fuse) {
		m.fuser = fuse.NewFuser(fuse.NewRules(p.Graph))
	}
	return m
}

// visit returns what is known of d, whose score evaluate tells where it is new.
func (m *Memory) visit(d plan.Decision, evaluate func(plan.Decision) plan.Score) *visited {
	m.key = append(m.key[:0], d.Device...)
	if m.fuser != nil && d.Fusion != nil {
		for _, head := range m.fuser.Fuse(d.Device, d.Fusion) {
			m.key = append(m.key, byte(head)) // below MaxOps
		}
	}
	if d.Priority != nil {
		for _, x := range m.pairs {
			if d.Device[x[0]] == d.Device[x[1]] {
				first := byte(0)
				if d.Priority[x[0]] < d.Priority[x[1]] {
					first = 1
				}
				m.key = append(m.key, first)
			}
		}
	}
	if v, known := m.plans[string(m.key)]; known {
		return v
	}
	if len(m.plans) >= maxPlans {
		clear(m.plans)
	}
	v := &visited{Score: evaluate(d)}
	m.plans[string(m.key)] = v
	return v
}

// Memories are those of several walkers on one problem. The zero value is ready for use,
// by several goroutines.
type Memories struct {
	mu sync.Mutex
	of map[int]*Memory
}

// Of returns the memory of a walker, empty at first.
func (m *Memories) Of(walker int) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[int]*Memory{}
	}
	if m.of[walker] == nil {
		m.of[walker] = new(Memory)
	}
	return m.of[walker]
}
