package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// dimsValue is a flag's sizes by name. It adds to what is there, as a settings file has it, but takes
// no two sizes of one name from the command line.
type dimsValue struct {
	to    *map[string]int64
	given map[string]int64 // on the command line
}

// addDims adds the flag that gives the sizes that a graph file leaves open.
func addDims(fl *pflag.FlagSet, to *map[string]int64) {
	fl.Var(&dimsValue{to, map[string]int64{}}, "dim", "size of an open dimension of a graph file, `NAME=N` as batch=32; repeatable")
}

// Set implements pflag.Value: text is NAME=N, or several behind commas.
func (v *dimsValue) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		name, size, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%s must be formatted as key=value", pair)
		}
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			return err
		}
		if other, twice := v.given[name]; twice && other != n {
			return usagef("--dim %s: is given as %d and as %d", name, other, n)
		}
		v.given[name] = n
		if *v.to == nil {
			*v.to = map[string]int64{}
		}
		(*v.to)[name] = n
	}
	return nil
}

// Type implements pflag.Value.
func (v *dimsValue) Type() string { return "stringToInt64" }

// String implements pflag.Value; nothing is given by default.
func (v *dimsValue) String() string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(v.given)) {
		pairs = append(pairs, fmt.Sprintf("%s=%d", name, v.given[name]))
	}
	return strings.Join(pairs, ",")
}
