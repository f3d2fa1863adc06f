package workloads

import "fmt"

// between is an error that names the field when x is outside [low, high].
func between(field string, x, low, high int) error {
	if x < low || x > high {
		return fmt.Errorf("%s is %d, want %d to %d", field, x, low, high)
	}
	return nil
}
