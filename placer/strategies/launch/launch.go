// Package launch says strategies in the flags of programs that run them.
package launch

import (
	"errors"
	"fmt"
	"strings"

	"placer/graph"
	"placer/graph/strategy"
)

// Run is a strategy as it is run.
type Run struct {
	Strategy strategy.Strategy
	Batch    int64 // samples of a step, on all devices together
	Trains   bool  // the step has a backward pass
	Mixture  bool  // the model has experts that replicas could share out
	Weights  graph.DType
	Layers   []int  // of the model, that each chunk of its stages has; nil where it is not known
	File     string // that says the strategy by modules, for torch
}

// WeightsOf returns the type of most weights of g.
func WeightsOf(g *graph.Graph) graph.DType {
	count := map[graph.DType]int64{}
	most := graph.F32
	for i := range graph.OpID(g.NumOps()) {
		if first, end := g.Outputs(i); g.Op(i).Params > 0 && first < end {
			t := g.Tensor(first).DType
			if count[t] += g.Op(i).Params; count[t] > count[most] {
				most = t
			}
		}
	}
	return most
}

// micro returns the samples of a micro-batch.
func (r Run) micro() int64 {
	return r.Batch / int64(r.Strategy.Parts())
}

// Program is a system that runs strategies.
type Program struct {
	Name string
	// Merges says that it merges the products of queries, keys and values, and of gate and up, when
	// it loads weights.
	Merges bool
	// Masters says that by its flags it holds weights, or copies of those of 16 bits, and the optimizer's
	// state in f32.
	Masters bool
	// server is what a server of language models is told besides; nil of what is none.
	server *server
	// flags returns what makes the program run r, or why it cannot.
	flags func(r Run) ([]string, error)
}

// server says what a server is told of what its replicas have.
type server struct {
	sequences string   // flag of the most sequences at once
	each      bool     // that is of each replica which attends, not of all that share experts out
	cache8    []string // flags that keep keys and values in 8 bits
}

// Torch is the program that runs a user's own model: placer_torch, which reads the strategy from a
// file (package placer/strategies/torch).
const Torch = "torch"

// programs are those that are known, by name.
var programs = []Program{
	{Name: "deepspeed", Masters: true, flags: deepSpeed},
	{Name: "megatron-lm", Masters: true, flags: megatronLM},
	{Name: "sglang", Merges: true, server: &server{"--max-running-requests", false, []string{"--kv-cache-dtype", "fp8_e4m3"}}, flags: sgLang},
	{Name: Torch, flags: torch},
	{Name: "torchtitan", Masters: true, flags: torchtitan},
	{Name: "vllm", Merges: true, server: &server{"--max-num-seqs", true, []string{"--kv-cache-dtype", "fp8"}}, flags: vLLM},
}

// Names returns the names of programs, sorted.
func Names() []string {
	names := make([]string, len(programs))
	for k, p := range programs {
		names[k] = p.Name
	}
	return names
}

// Find returns a program by its name.
func Find(name string) (Program, error) {
	for _, p := range programs {
		if p.Name == name {
			return p, nil
		}
	}
	return Program{}, fmt.Errorf("program %q is not known: %s", name, strings.Join(Names(), ", "))
}

// ErrPlacement is why no program runs a row of a placement.
var ErrPlacement = errors.New("it has no placements of single ops")

// Flags returns the flags, or the configuration, by which the program runs r. The error says
// what of r it does not have.
func (p Program) Flags(r Run) (string, error) {
	if r.Strategy.Schedule == strategy.Free && r.Strategy.Pipeline > 1 {
		return "", ErrPlacement
	}
	flags, err := p.flags(r)
	return strings.Join(flags, " "), err
}

// Servers returns the names of programs that serve language models, sorted.
func Servers() (names []string) {
	for _, p := range programs {
		if p.server != nil {
			names = append(names, p.Name)
		}
	}
	return names
}

// Serves reports whether p serves language models.
func (p Program) Serves() bool { return p.server != nil }

// Serving returns the flags by which a server, which p is, runs a replica that s divides, of so many sequences at once;
// cache8 says that it is asked to keep keys and values in 8 bits.
func (p Program) Serving(s strategy.Strategy, sequences int64, cache8 bool) (string, error) {
	s.MicroBatches = s.Pipeline
	flags, err := p.Flags(Run{Strategy: s, Batch: sequences, Mixture: s.Experts > 0})
	if err != nil {
		return "", err
	}
	if p.server.each {
		sequences /= int64(s.Data)
	}
	all := append(strings.Fields(flags), p.server.sequences, fmt.Sprint(sequences))
	if cache8 {
		all = append(all, p.server.cache8...)
	}
	return strings.Join(all, " "), nil
}

// list collects flags.
type list []string

// size adds a flag with its number where that is more than 1.
func (l *list) size(flag string, n int) {
	if n > 1 {
		*l = append(*l, flag, fmt.Sprint(n))
	}
}

// set adds words if ok.
func (l *list) set(ok bool, words ...string) {
	if ok {
		*l = append(*l, words...)
	}
}
