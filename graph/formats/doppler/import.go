package doppler

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/graph/formats/times"
	"placer/units"
)

// costPerSecond is the compute cost of a second of a device, and the
// communication cost of a second of a connection.
const costPerSecond = 1e13

// Devices is what the published experiments run most graphs on.
const Devices = 4

const (
	maxNodes = 1 << 20
	maxCost  = 1e15
)

// Sniff reports whether data looks like a task graph: a number alone on its
// first line, numbers with commas on the second.
func Sniff(data []byte) bool {
	first, rest, ok := bytes.Cut(data, []byte("\n"))
	second, _, _ := bytes.Cut(rest, []byte("\n"))
	if _, err := strconv.Atoi(string(bytes.TrimSpace(first))); err != nil || !ok {
		return false
	}
	return len(bytes.TrimSpace(second)) == 0 || bytes.ContainsRune(second, ',') && len(bytes.Trim(second, "0123456789, \t\r")) == 0
}

// Import reads a task graph. name is the file's name, for errors and for the
// graph.
func Import(data []byte, name string) (*times.Instance, error) {
	x, err := read(data, foreign.GraphName(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return x, nil
}

func read(data []byte, name string) (*times.Instance, error) {
	lines := strings.Split(strings.TrimRight(string(data), " \t\r\n"), "\n")
	if len(lines) < 5 {
		return nil, fmt.Errorf("line %d: the file ends early, want at least 5 lines", len(lines))
	}
	total, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || total < 1 || total > maxNodes {
		return nil, fmt.Errorf("line 1: %.20q, want a number of nodes from 1 to %d", lines[0], maxNodes)
	}
	var lists [3][]int
	for k := range lists {
		if lists[k], err = numbers(lines[k+1]); err != nil {
			return nil, fmt.Errorf("line %d: %w", k+2, err)
		}
	}
	inputs, from, to := len(lists[0]), lists[1], lists[2]
	n := total - inputs
	if n < 1 || len(lines)-4 != n {
		return nil, fmt.Errorf("%d nodes with %d inputs need %d lines of costs, the file has %d", total, inputs, n, len(lines)-4)
	}
	if len(from) != len(to) {
		return nil, fmt.Errorf("line 4: %d destinations for %d sources", len(to), len(from))
	}
	in := make([][]graph.TensorID, n)
	for k := range from {
		if from[k] >= n || to[k] >= n {
			return nil, fmt.Errorf("edge %d, from %d to %d: want nodes 0 to %d", k, from[k], to[k], n-1)
		}
		in[to[k]] = append(in[to[k]], graph.TensorID(from[k])) // one output each
	}
	b := graph.NewBuilder(name)
	m := times.Model{Name: "doppler", Count: Devices, Memory: graph.MaxBytes}
	for i := range n {
		op, communication, err := costs(lines[4+i])
		if err != nil {
			return nil, fmt.Errorf("line %d: node %d: %w", 5+i, i, err)
		}
		op.Name = fmt.Sprintf("n%d", i)
		m.Seconds = append(m.Seconds, float64(op.FLOPs)/costPerSecond)
		b.Op(op, in[i], graph.Tensor{Bytes: communication})
	}
	return times.Build(b, times.Table{Source: name, Models: []times.Model{m}, Bandwidth: costPerSecond, Uncontended: true})
}

// numbers reads a list with commas, of which the last may have nothing behind
// it.
func numbers(line string) ([]int, error) {
	line = strings.TrimSuffix(strings.TrimSpace(line), ",")
	if line == "" {
		return nil, nil
	}
	var out []int
	for k, word := range strings.Split(line, ",") {
		x, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || x < 0 {
			return nil, fmt.Errorf("entry %d: %.20q, want a node's number", k, word)
		}
		out = append(out, x)
	}
	return out, nil
}

func costs(line string) (op graph.Op, communication units.Bytes, err error) {
	words := strings.Split(strings.TrimSpace(line), ",")
	if len(words) != 2 && len(words) != 3 {
		return op, 0, fmt.Errorf("%.40q, want compute,communication[,type]", line)
	}
	var cost [2]float64
	for k := range cost {
		cost[k], err = strconv.ParseFloat(strings.TrimSpace(words[k]), 64)
		if err != nil || !(cost[k] >= 0) || cost[k] > maxCost {
			return op, 0, fmt.Errorf("cost %.20q, want a number from 0 to %g", words[k], float64(maxCost))
		}
	}
	op = graph.Op{Kind: "Einsum", FLOPs: units.FLOPs(cost[0]), Forward: graph.None}
	if len(words) == 3 {
		if op.Kind = graph.Kind(strings.TrimSpace(words[2])); op.Kind == "" {
			return op, 0, fmt.Errorf("the type is empty")
		}
	}
	return op, units.Bytes(cost[1]), nil
}
