// Package placer owns the library's facade: it reads a graph, places it on a machine
// and simulates a plan. Its folders hold what is behind it, in this order:
//
//   - problem: the assembly of a placement problem from a graph, a machine and options;
//   - search: all methods within one budget, and the folder of a run;
//   - methods: every method by its name;
//   - policy: the learned policies;
//   - pretrained: the policy that the program carries.
package placer
