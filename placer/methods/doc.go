// Package methods owns the list of every method: its name, kind, source, what
// it needs of the computer beside this program, and how to make one. A method
// that is listed here can be compared and is held to the conformance suite.
package methods
