package nn_test

import (
	"testing"

	"placer/nn/nntest"
)

func TestConformance(t *testing.T) {
	for _, b := range nntest.Backends(t) {
		t.Run(b.Name(), func(t *testing.T) { nntest.Run(t, b) })
	}
}
