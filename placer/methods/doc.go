// Package methods owns the list of every method: its name, kind, source, what
// it needs of the computer beside this program, and how to make one. A method
// that is listed here can be compared and is held to the conformance suite.
//
// Where to start: methods.go is the list. catalogue.go has what an entry is, search.go which
// of them a search has, portfolio.go which are arms of its portfolio (turn.go makes an arm
// decide some tasks alone), goone.go the policy that learns on the graph at hand, given.go
// plans that are there already, teach.go the search that labels the graphs of a corpus.
package methods
