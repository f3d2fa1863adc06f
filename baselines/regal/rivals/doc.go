// Package rivals owns the methods of REGAL's table 1 (Paliwal et al., ICLR 2020)
// as one list, and the comparison that the table makes of them: every method on
// every graph at one number of evaluations, each schedule judged by the model
// itself, means over graphs of the improvement over BRKGA-5K and of the gap from
// the best known.
//
// REGAL's own policy and GAS take part as propose.Proposers that the caller
// hands in.
package rivals
