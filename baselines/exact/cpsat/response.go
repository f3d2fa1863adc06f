package cpsat

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Status says what a run has shown.
type Status int

// Statuses, as CpSolverStatus numbers them.
const (
	Unknown    Status = iota // bounds came first
	Invalid                  // the model breaks the format's rules
	Feasible                 // a solution, not proven to be the best
	Infeasible               // there is no solution
	Optimal                  // the best solution
)

func (s Status) String() string {
	names := [...]string{"UNKNOWN", "INVALID", "FEASIBLE", "INFEASIBLE", "OPTIMAL"}
	if s >= 0 && int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("status %d", int(s))
}

// Response is what a run came to.
type Response struct {
	Status Status
	// Objective is the value of Values, Bound a proven lower bound of the objective
	// of every solution; of use only where the model has an objective, and
	// Objective only where there is a solution.
	Objective, Bound float64
	Values           []int64 // [variables]; nil without a solution
}

// Value returns the value of v, which may be a negation.
func (r *Response) Value(v Var) int64 {
	if v < 0 {
		return 1 - r.Values[v.Not()]
	}
	return r.Values[v]
}

// True reports whether literal v is 1.
func (r *Response) True(v Var) bool { return r.Value(v) == 1 }

// unmarshal reads a serialized CpSolverResponse.
func unmarshal(b []byte) (*Response, error) {
	r := &Response{}
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, fmt.Errorf("cpsat: response: %w", protowire.ParseError(n))
		}
		b = b[n:]
		body := b
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			return nil, fmt.Errorf("cpsat: response: field %d: %w", num, protowire.ParseError(n))
		}
		b = b[n:]
		switch {
		case num == 1 && typ == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(body)
			r.Status = Status(v)
		case num == 2 && typ == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(body)
			r.Values = append(r.Values, int64(v))
		case num == 2 && typ == protowire.BytesType:
			list, _ := protowire.ConsumeBytes(body)
			for len(list) > 0 {
				v, n := protowire.ConsumeVarint(list)
				if n < 0 {
					return nil, fmt.Errorf("cpsat: response: solution: %w", protowire.ParseError(n))
				}
				r.Values = append(r.Values, int64(v))
				list = list[n:]
			}
		case typ == protowire.Fixed64Type:
			v, _ := protowire.ConsumeFixed64(body)
			x := math.Float64frombits(v)
			switch num {
			case 3:
				r.Objective = x
			case 4:
				r.Bound = x
			}
		}
	}
	return r, nil
}
