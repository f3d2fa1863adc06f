package catalogue

import (
	"fmt"
	"strings"

	"placer/graph/unit"
	"placer/plan"
)

// Method is an entry of the catalogue.
type Method struct {
	Name string // of the Placer that New returns
	Kind plan.Kind
	// About says in one line what the method does.
	About string
	// Source names where the method is published; empty for this project's own.
	Source string
	// Needs names what has to be installed for the method, empty for nothing. A
	// method that lacks it answers with a judge.Unavailable.
	Needs string
	New   func(Options) (plan.Placer, error)
}

// Options are what a method may be told when it is made.
type Options struct {
	// Level is where methods decide that leave it open.
	Level unit.Level
	// Workers is how many evaluations a method may make at once, at least 1. Under
	// a budget in evaluations no outcome depends on it.
	Workers int
	// Start is a placement to start from, [N], for the searches that can; nil for
	// their own.
	Start []uint8
}

// Default decides on chains, one evaluation at a time.
func Default() Options { return Options{Level: unit.Chain, Workers: 1} }

// Find returns the method of that name. The error lists all names.
func Find(name string) (Method, error) {
	var known []string
	for _, m := range Methods() {
		if m.Name == name {
			return m, nil
		}
		known = append(known, m.Name)
	}
	return Method{}, fmt.Errorf("unknown method %q, want one of %s", name, strings.Join(known, ", "))
}

// fixed makes a method that has no options.
func fixed(p plan.Placer, about, source string) Method {
	return Method{Name: p.Name(), Kind: p.Kind(), About: about, Source: source, New: func(Options) (plan.Placer, error) { return p, nil }}
}

// needing says what m needs.
func needing(needs string, m Method) Method {
	m.Needs = needs
	return m
}

// made makes a method from its options.
func made(about, source string, start func(Options) plan.Placer) Method {
	p := start(Default())
	return Method{Name: p.Name(), Kind: p.Kind(), About: about, Source: source, New: func(o Options) (plan.Placer, error) { return start(o), nil }}
}
