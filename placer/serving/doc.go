// Package serving owns the answer to how many requests a second the replicas of a language
// model serve, by which division, and how many sequences each should have at once.
//
// A replica batches continuously: it decodes a token of each of B sequences at a time, and
// the prompts that arrived meanwhile are a step of their own before the next (Yu et al., Orca,
// OSDI 2022). Both steps are simulated (package strategies) by the division asked for; the rest is
// arithmetic, in cycle.go.
//
// Where to start: load.go is what is asked, planner.go the search for the largest batch,
// cycle.go what a batch comes to, apart.go prompts and answers on devices of their own,
// divisions.go the divisions that are tried, steps.go the simulated steps.
//
// Letters: B sequences of a replica at once, P tokens of a prompt, O of an answer, k prompts
// of a step.
package serving
