package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// drawnProblem returns the k-th drawn problem of a family that one of heldOut keeps out, and
// which.
func drawnProblem(k int) (*problem.Problem, string, error) {
	all := families.All()
	for index := 0; ; index++ {
		of := []string{all[index%len(all)].Name}
		out := slices.IndexFunc(heldOut, func(f string) bool { return families.Out(of, []string{f}) })
		if out < 0 {
			continue
		}
		if k--; k < 0 {
			r, p, err := corpus.Draw(context.Background(), drawnSeed, index)
			if err == nil && !families.Out(r.Families, []string{heldOut[out]}) {
				err = fmt.Errorf("drawn problem %d is of %v, which %s does not keep out", index, r.Families, heldOut[out])
			}
			if err != nil {
				return nil, "", err
			}
			return p, heldOut[out], nil
		}
	}
}
