// Package report owns the forms in which results leave the program: text tables
// for people and versioned JSON documents for programs. Field by field they are
// described in docs/formats.md.
package report
