package methods

import (
	"reflect"
	"testing"

	"placer/placer/policy/cem"
	"placer/placer/policy/fusion"
	"placer/placer/policy/goone"
	"placer/placer/policy/joint"
)

// TestSettings: the four policies of a graph have at most 30 settings together.
func TestSettings(t *testing.T) {
	sum := 0
	for _, c := range []any{goone.Config{}, cem.Config{}, fusion.Config{}, joint.Config{}} {
		n := leaves(reflect.TypeOf(c))
		t.Logf("%T: %d", c, n)
		sum += n
	}
	if sum > 30 {
		t.Errorf("%d settings, want at most 30", sum)
	}
}

// leaves counts the values that a value of type x holds.
func leaves(x reflect.Type) (n int) {
	if x.Kind() != reflect.Struct {
		return 1
	}
	for i := range x.NumField() {
		n += leaves(x.Field(i).Type)
	}
	return n
}
