package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"

	"placer/internal/jsonx"
)

// tolerance is the relative difference that an audit grants a stored figure:
// files hold float64 in full, so it covers the order of summation only.
const tolerance = 1e-9

// Mismatch is a figure of a results file that does not follow from the facts in
// the same file.
type Mismatch struct {
	Place            string // as rows[3].reduction
	stored, computed any    // nil: absent
}

func (m Mismatch) String() string {
	return fmt.Sprintf("%s is %v, the file's own times give %v", m.Place, show(m.stored), show(m.computed))
}

func show(x any) any {
	if x == nil {
		return "nothing"
	}
	return x
}

// Audit recomputes every aggregate of a comparison's JSON document from its
// matrix and trials, as the document's version defines them. checked counts the figures compared.
func Audit(data []byte) (found []Mismatch, checked int, err error) {
	var c Comparison
	if err := jsonx.Decode(data, &c); err != nil {
		return nil, 0, err
	}
	if err := c.Matrix.Validate(); err != nil {
		return nil, 0, fmt.Errorf("matrix: %w", err)
	}
	cells := map[Cell]bool{}
	for _, x := range c.Matrix.Cells() {
		cells[x] = true
	}
	for i, t := range c.Trials {
		if !cells[t.Cell] {
			return nil, 0, fmt.Errorf("trials[%d]: %s on %s with seed %d is not of this comparison, or is there twice", i, t.Method, t.Case, t.Seed)
		}
		delete(cells, t.Cell)
	}
	computed := Summarise(c.Matrix, c.Trials)
	if c.Format == format1 {
		computed.asFormat1()
	}
	again, err := json.Marshal(computed)
	if err != nil {
		return nil, 0, err
	}
	found, checked, err = Differences(data, again)
	return found, checked, err
}

// Differences compares two JSON documents, numbers within tolerance; checked
// counts the values compared.
func Differences(stored, computed []byte) (found []Mismatch, checked int, err error) {
	var a, b any
	if err := json.Unmarshal(stored, &a); err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(computed, &b); err != nil {
		return nil, 0, err
	}
	d := differ{}
	d.compare("", a, b)
	return d.found, d.checked, nil
}

type differ struct {
	found   []Mismatch
	checked int
}

func (d *differ) compare(place string, a, b any) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		var keys []string
		for k := range x {
			keys = append(keys, k)
		}
		for k := range y {
			if _, ok := x[k]; !ok {
				keys = append(keys, k)
			}
		}
		sort.Strings(keys)
		for _, k := range slices.Compact(keys) {
			at := k
			if place != "" {
				at = place + "." + k
			}
			d.compare(at, x[k], y[k])
		}
		return
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			d.compare(fmt.Sprintf("%s[%d]", place, i), x[i], y[i])
		}
		return
	}
	d.checked++
	if !same(a, b) {
		d.found = append(d.found, Mismatch{place, a, b})
	}
}

func same(a, b any) bool {
	x, ok := a.(float64)
	y, also := b.(float64)
	if ok && also {
		return x == y || math.Abs(x-y) <= tolerance*max(math.Abs(x), math.Abs(y))
	}
	switch a.(type) {
	case []any, map[string]any:
		return false // of another length or kind
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}
