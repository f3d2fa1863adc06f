// Package brkga owns the biased random-key genetic algorithm (Gonçalves and
// Resende, 2011) with distributions of mutants that may differ from key to key,
// which is what REGAL learns to propose (Paliwal et al., ICLR 2020, 3.2).
//
// Run minimises any Fitness. Its budget is a number of evaluations; everything
// follows from the random stream.
//
// Letters: L keys of a chromosome.
package brkga
