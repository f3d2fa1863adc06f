package plan

import "fmt"

// Objective is what a placement is judged by. Whatever it is, less is better and
// Score.Seconds holds it.
type Objective string

// Objectives. The zero value is Step.
const (
	Step       Objective = "step"       // seconds of one step
	Throughput Objective = "throughput" // largest load of a device, in seconds a sample (package maxload)
	Memory     Objective = "memory"     // peak bytes of the fullest device
)

// ParseObjective reads a name.
func ParseObjective(s string) (Objective, error) {
	switch o := Objective(s); o {
	case Step, Throughput, Memory:
		return o, nil
	}
	return "", fmt.Errorf("unknown objective %q, want %s, %s or %s", s, Step, Throughput, Memory)
}

// Normal returns o, with Step for the zero value.
func (o Objective) Normal() Objective {
	if o == "" {
		return Step
	}
	return o
}
