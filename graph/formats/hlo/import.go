package hlo

import (
	"bytes"
	"fmt"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
)

// Sniff reports whether data is a text of HLO or a message of its protocol buffers.
func Sniff(data []byte) bool { return isHLOText(data) || isModule(inHloProto(data)) }

// SniffStable reports whether data is MLIR's text with functions.
func SniffStable(data []byte) bool { return sniffMLIR(data) }

func isHLOText(data []byte) bool {
	p := &parser{data: data[:min(len(data), 1<<16)]}
	p.space()
	return p.at <= len(p.data) && p.word("HloModule")
}

// Import reads an HLO module, text or protocol buffer; name is the file's, for errors
// and for the graph. trips gives loops that do not say how often they run their trip
// counts, by name.
func Import(data []byte, name string, trips map[string]int64) (*graph.Graph, *Summary, error) {
	if isHLOText(data) {
		return finish(parseText, data, name, trips)
	}
	return finish(parseProto, data, name, trips)
}

// ImportStable is Import of StableHLO's text.
func ImportStable(data []byte, name string, trips map[string]int64) (*graph.Graph, *Summary, error) {
	return finish(parseMLIR, data, name, trips)
}

func finish(parse func([]byte) (*module, error), data []byte, name string, trips map[string]int64) (*graph.Graph, *Summary, error) {
	m, err := parse(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	short := foreign.GraphName(string(bytes.TrimSpace([]byte(name))))
	for _, ending := range []string{".gz", ".hlo", ".mlir", ".pb", ".stablehlo"} {
		short = strings.TrimSuffix(short, ending)
	}
	g, sum, err := build(m, foreign.Clean(short), trips)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return g, sum, nil
}
