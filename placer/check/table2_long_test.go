//go:build long

package check_test

// table2 returns all rows.
func table2() (all []row) {
	for _, r := range []row{{"rnnlm2", 2, nil}, {"rnnlm4", 4, nil}, {"rnnlm8", 8, nil}, {"gnmt2", 2, nil}, {"gnmt4", 4, nil}, {"gnmt8", 8, nil}, {"trfxl2", 2, nil}, {"trfxl4", 4, nil},
		{"trfxl8", 8, nil}, {"inception", 2, nil}, {"inception64", 2, nil}, {"amoebanet", 4, nil}, {"wavenet2", 2, nil}, {"wavenet4", 4, nil}} {
		r.methods = []string{"human", "listsched", "heft-units", "zero-shot"}
		all = append(all, r)
	}
	return all
}
