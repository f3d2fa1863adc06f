package hlo

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"placer/graph/formats/foreign"
)

var tensorType = regexp.MustCompile(`tensor<([^<>]*)`)

// typ reads the first tensor type in text; other types have no elements.
func (p *mlir) typ(text string) (shape, error) {
	if strings.Contains(text, "!torch.") {
		return shape{}, fmt.Errorf("its type is of MLIR's torch dialect, want StableHLO")
	}
	found := tensorType.FindStringSubmatch(text)
	if found == nil {
		return array(p.elems["token"], []int64{})
	}
	dims := []int64{}
	body, _, _ := strings.Cut(found[1], ",")
	parts := strings.Split(strings.TrimSpace(body), "x")
	for i, d := range parts {
		if n, err := strconv.ParseInt(d, 10, 64); err == nil {
			dims = append(dims, n)
			continue
		}
		if d == "?" {
			return shape{}, fmt.Errorf("type %q has a dimension without a size", foreign.Brief(found[0]+">"))
		}
		name := strings.ToLower(strings.Join(parts[i:], "x"))
		if name == "complex" { // complex<f32>, complex<f64>
			name = "c64"
			if strings.Contains(text, "complex<f64>") {
				name = "c128"
			}
		}
		e, ok := p.elems[mlirElem(name)]
		if !ok {
			return shape{}, fmt.Errorf("element type %q is unknown", foreign.Brief(name))
		}
		return array(e, dims)
	}
	return shape{}, fmt.Errorf("type %q has no element type", foreign.Brief(found[0]+">"))
}

// mlirElem returns HLO's name of an element type.
func mlirElem(name string) string {
	switch {
	case name == "i1":
		return "pred"
	case name == "index":
		return "s64"
	case strings.HasPrefix(name, "ui"):
		return "u" + name[2:]
	case strings.HasPrefix(name, "si"):
		return "s" + name[2:]
	case strings.HasPrefix(name, "i"):
		return "s" + name[1:]
	}
	return name
}
