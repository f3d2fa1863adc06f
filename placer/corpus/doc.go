// Package corpus owns the problems that policies learn from, each with the best plan that
// a long search has found: what a problem is rebuilt from, how problems are drawn and
// labelled, and the file that holds them.
//
// A recipe is a small JSON value: the graph by name, the machine, the tasks. A label is a
// decision for every op, beside it the steps of the human expert and of one device. The
// file is a folder's corpus.jsonl: a line for the settings, then one for each problem.
package corpus
