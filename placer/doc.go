// Package placer owns the short way through the module: read a graph, place it on a
// machine, judge a plan. Its folders hold the long one, in this order:
//
//   - problem: the assembly of a placement problem from a graph, a machine and options;
//   - search: all methods within one budget, and the folder of a run;
//   - methods: every method by its name;
//   - policy: the learned policies;
//   - pretrained: the policy that the program carries.
package placer
