package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"placer/baselines/rules"
	"placer/hw"
	"placer/placer/corpus"
	"placer/placer/corpus/families"
	"placer/placer/policy/proposer"
	"placer/placer/problem"
	"placer/plan"
	"placer/workloads"
)

// row is a row of table 2.
type row struct {
	graph   string
	devices int
}

func table2() (all []row, err error) {
	data, err := os.ReadFile("experiments/table2/rows.tsv")
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var r row
		if _, err := fmt.Sscan(line, &r.graph, &r.devices); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Problems are drawn as those are that networks learn from, under another seed.
const (
	drawnPrefix = "drawn"
	drawnSeed   = 4600
)

// heldOut names the families of table 2, without each of which there is a network.
var heldOut = []string{"rnnlm", "gnmt", "trfxl", "inception", "amoebanet", "wavenet"}

// searched is a problem with what it is compared with and the network that has not seen it.
type searched struct {
	*problem.Problem
	human   float64
	network *proposer.Network
}

// caseOf returns the problem of a name: a graph of table 2, or the k-th drawn one of those
// whose family some network has not seen.
func (e *experiment) caseOf(name string) (*searched, error) {
	c := &searched{}
	family := strings.TrimRight(name, "0123456789")
	if k, isDrawn := strings.CutPrefix(name, drawnPrefix); isDrawn {
		n, err := strconv.Atoi(k)
		if err != nil {
			return nil, err
		}
		if c.Problem, family, err = drawnProblem(n); err != nil {
			return nil, err
		}
		c.Tasks = e.tasks
	} else {
		rows, err := table2()
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if r.graph != name {
				continue
			}
			g, err := workloads.Build(name)
			if err != nil {
				return nil, err
			}
			m, err := hw.Take("p100", r.devices, false)
			if err != nil {
				return nil, err
			}
			o := problem.Options{}
			if e.tasks != plan.Place {
				o.Tasks = e.tasks
			}
			if c.Problem, err = problem.New(problem.Source{Graph: g}, m, o); err != nil {
				return nil, err
			}
		}
		if c.Problem == nil {
			return nil, fmt.Errorf("no row of table 2 is %q", name)
		}
	}
	expert, err := rules.Expert().Place(context.Background(), &c.Problem.Problem)
	if err != nil {
		return nil, err
	}
	c.human = expert.Score.Value
	path := filepath.Join(e.networks, "without-"+family+".safetensors")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if c.network, err = proposer.Read(data, path); err != nil {
		return nil, err
	}
	if !families.Out([]string{family}, c.network.Card.HeldOut) {
		return nil, fmt.Errorf("%s has seen %s", path, family)
	}
	return c, nil
}

// drawnProblem returns the k-th drawn problem that one of heldOut keeps out, and which.
func drawnProblem(k int) (*problem.Problem, string, error) {
	for index := 0; ; index++ {
		r, p, err := corpus.Draw(context.Background(), drawnSeed, index)
		if err != nil {
			return nil, "", err
		}
		for _, f := range heldOut {
			if !families.Out(r.Families, []string{f}) {
				continue
			}
			if k--; k < 0 {
				return p, f, nil
			}
			break
		}
	}
}
