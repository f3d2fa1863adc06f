// Package bench owns the experiments that the command line repeats: comparisons
// of papers and of predictions with measurements, as functions of their settings.
// Their clock, their progress and what they print are the caller's.
package bench
