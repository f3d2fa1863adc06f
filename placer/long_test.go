//go:build long

package placer_test

import "testing"

func TestMoreBudgetIsNeverWorseLong(t *testing.T) { moreBudget(t, 200) }

func TestFasterLinksAreRarelyWorseLong(t *testing.T) { fasterLinks(t, 200, 10_000) }
