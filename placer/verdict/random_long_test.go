//go:build long

package verdict_test

// randomGraphs is how many graphs TestMoreIsNeverWorse takes.
const randomGraphs = 200
