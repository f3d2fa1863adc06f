// Package compare owns comparisons: any set of methods on any set of cases and
// seeds at one budget, run side by side, taken up again after a kill, summarised
// by one set of definitions, and audited: every aggregate of a results file can
// be recomputed from the trials in it.
package compare
