//go:build long

package placer_test

import "testing"

func TestMoreBudgetIsNeverWorseLong(t *testing.T) { moreBudget(t, 200) }
