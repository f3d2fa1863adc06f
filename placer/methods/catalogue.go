package methods

import (
	"fmt"
	"strings"

	"placer/graph/unit"
	"placer/internal/spell"
	"placer/nn"
	"placer/placer/search"
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
	// method that lacks it answers with a budget.Unavailable.
	Needs string
	// Joint says that the method trains on other graphs beside the one it places,
	// those of Options.Companions.
	Joint bool
	New   func(Options) (plan.Placer, error)
}

// Options are what a method may be told when it is made.
type Options struct {
	// Level is where methods decide that leave it open.
	Level unit.Level
	// Workers is how many evaluations a method may make at once, at least 1. Under
	// a budget in evaluations no outcome depends on it.
	Workers int
	// Walkers is how many arms the portfolio pulls at once; 0 means as portfolio.Placer
	// says. The outcome depends on it.
	Walkers int
	// Start is where to start, for the methods that can.
	search.Start
	// NetworkDevice is what the network of a policy runs on; nil is the CPU.
	NetworkDevice nn.Device
	// Companions are problems that joint methods train on too.
	Companions []*plan.Problem
}

// Default decides on chains, one evaluation at a time.
func Default() Options { return Options{Level: unit.Chain, Workers: 1} }

// Find returns the method of that name, without regard to case and hyphens. The error
// names the method whose name is nearest, and lists all.
func Find(name string) (Method, error) {
	all := Methods()
	names := make([]string, len(all))
	for k, m := range all {
		names[k] = m.Name
	}
	k, err := Match(name, names)
	if err != nil {
		return Method{}, err
	}
	return all[k], nil
}

// Match returns the index of name among names, without regard to case and hyphens. The
// error names those that are near it, and lists all.
func Match(name string, names []string) (int, error) {
	for k, n := range names {
		if folded(name) == folded(n) {
			return k, nil
		}
	}
	all := strings.Join(names, ",")
	if near := spell.Near(name, names); len(near) > 0 {
		return -1, fmt.Errorf("unknown method %q, did you mean %s? The methods are %s", name, strings.Join(near, ", "), all)
	}
	return -1, fmt.Errorf("unknown method %q, want some of %s", name, all)
}

// folded returns name in lower case without hyphens.
func folded(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "") }

// fixed makes a method that has no options.
func fixed(p plan.Placer, about, source string) Method {
	return Method{Name: p.Name(), Kind: p.Kind(), About: about, Source: source, New: func(Options) (plan.Placer, error) { return p, nil }}
}

// needing says what m needs.
func needing(needs string, m Method) Method {
	m.Needs = needs
	return m
}

// withCompanions says that m trains on companions too.
func withCompanions(m Method) Method {
	m.Joint = true
	return m
}

// made makes a method from its options.
func made(about, source string, start func(Options) plan.Placer) Method {
	p := start(Default())
	return Method{Name: p.Name(), Kind: p.Kind(), About: about, Source: source, New: func(o Options) (plan.Placer, error) { return start(o), nil }}
}
