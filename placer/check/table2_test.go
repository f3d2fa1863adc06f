//go:build !long

package check_test

// table2 returns four of the rows.
func table2() []row {
	return []row{{"rnnlm2", 2, []string{"human"}}, {"trfxl4", 4, []string{"human", "listsched"}}, {"wavenet2", 2, []string{"human", "heft-units"}}, {"amoebanet", 4, []string{"human"}}}
}
