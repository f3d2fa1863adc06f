package listsched

import (
	"testing"

	"placer/baselines/conformance"
	"placer/plan"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Method{Name: "listsched", New: func() (plan.Placer, error) { return Rules(), nil }})
}
