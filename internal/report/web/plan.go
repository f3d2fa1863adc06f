package web

import (
	"placer/graph"
	"placer/hw"
	"placer/internal/report"
	"placer/plan"
	"placer/sim"
)

// Plan is a plan whose step has been simulated with its trace.
type Plan struct {
	Title      string // what tells it from another plan on the page; may be empty
	Graph      *graph.Graph
	Machine    *hw.Machine
	Result     *sim.Result
	Simulation *report.Simulation
	Bound      float64 // proven for every plan, seconds; 0 where there is none
	// Search is the result of the search that found the plan, Curves how its methods
	// came there; nil where they are not known.
	Search *report.Search
	Curves []Curve
	// Notes stand below the table of methods.
	Notes []string
}

// Curve is the course of one method.
type Curve struct {
	Method string
	Kind   plan.Kind
	Points []Point
}

// Point says what a method had come to. Value is the objective's.
type Point struct {
	Seconds     float64
	Evaluations int
	Value       float64
}
