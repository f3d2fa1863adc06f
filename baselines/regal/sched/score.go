package sched

// Objective is what a schedule is judged by.
type Objective int

// The objectives of the paper.
const (
	RunTime    Objective = iota // under the machine's memory, if it has a limit
	PeakMemory                  // the most that any device holds at any time
)

func (o Objective) String() string { return [...]string{"run time", "peak memory"}[o] }

// Infeasible is the cost of a schedule that exceeds the devices' memory, before
// its excess is added: more than any feasible schedule costs.
const Infeasible = 1e18

// Score is what a schedule comes to.
type Score struct {
	Time float64
	Peak int64 // 0 where the evaluator does not track memory
}

// Cost returns what the objective minimises. A run time above the memory limit
// ranks below all feasible ones, and less excess before more.
func (o Objective) Cost(m Machine, s Score) float64 {
	switch {
	case o == PeakMemory:
		return float64(s.Peak)
	case m.Memory > 0 && s.Peak > m.Memory:
		return Infeasible + Infeasible*float64(s.Peak-m.Memory)/float64(m.Memory)
	}
	return s.Time
}
