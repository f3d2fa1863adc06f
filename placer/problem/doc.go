// Package problem owns the assembly of placement problems: a graph with what its
// file says of times, a machine, and how plans are judged go in; what every method
// is handed comes out. Commands, comparisons, experiments and tests all build
// problems here.
package problem
