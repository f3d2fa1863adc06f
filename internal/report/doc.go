// Package report owns the forms in which results leave the program: text tables
// for people and versioned JSON documents for programs. Field by field they are
// described in docs/formats.md.
//
// Where to start: a document is a struct with its JSON keys, made by a function and written
// for people by its WriteText; search.go is the largest. table.go, markdown.go, cells.go and
// csv.go are the forms of a table, plot.go that of a plot, page.go what text and tables are
// written to, words.go the figures in sentences. audit.go recomputes what a document adds up.
package report
