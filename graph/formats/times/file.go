package times

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"placer/graph/formats/foreign"
	"placer/internal/jsonx"
	"placer/units"
)

// Format is the value of "format" in a file of times.
const Format = "placer times 1"

type file struct {
	Format      string      `json:"format"`
	Graph       string      `json:"graph"` // hash
	Source      string      `json:"source"`
	Bandwidth   float64     `json:"bandwidth"` // bytes a second
	Latency     float64     `json:"latency"`   // seconds
	Uncontended bool        `json:"uncontended,omitempty"`
	Issue       float64     `json:"issue_s,omitempty"` // seconds
	Transfer    []float64   `json:"transfer_s,omitempty"`
	Models      []modelFile `json:"models"`
}

type modelFile struct {
	Name    string      `json:"name"`
	CPU     bool        `json:"cpu,omitempty"`
	Count   int         `json:"count"`
	Memory  units.Bytes `json:"memory"`
	Seconds []*float64  `json:"seconds"` // null: cannot run there
}

// Write writes the table as JSON (docs/formats.md).
func (t *Table) Write(w io.Writer) error {
	f := file{Format: Format, Graph: t.GraphHash, Source: t.Source, Bandwidth: t.Bandwidth, Latency: t.Latency, Uncontended: t.Uncontended, Issue: t.Issue, Transfer: t.Transfer}
	for _, m := range t.Models {
		x := modelFile{Name: m.Name, CPU: m.CPU, Count: m.Count, Memory: m.Memory}
		for k := range m.Seconds {
			if math.IsInf(m.Seconds[k], 1) {
				x.Seconds = append(x.Seconds, nil)
			} else {
				x.Seconds = append(x.Seconds, &m.Seconds[k])
			}
		}
		f.Models = append(f.Models, x)
	}
	data, err := json.Marshal(&f)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// ReadFile reads the file of times at path. Check tells whether it goes with a
// graph.
func ReadFile(path string) (*Table, error) {
	data, err := foreign.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Read(data, path)
}

// Read reads a file of times; name is the file's name for errors.
func Read(data []byte, name string) (*Table, error) {
	if of := jsonx.Format(data); of != "" && of != Format {
		return nil, fmt.Errorf("%s: format is %q, want %q", name, of, Format)
	}
	var f file
	if err := foreign.DecodeStrict(data, name, &f); err != nil {
		return nil, err
	}
	if f.Format != Format {
		return nil, fmt.Errorf("%s: format is %q, want %q", name, f.Format, Format)
	}
	t := &Table{GraphHash: f.Graph, Source: f.Source, Bandwidth: f.Bandwidth, Latency: f.Latency, Uncontended: f.Uncontended, Issue: f.Issue, Transfer: f.Transfer}
	for _, x := range f.Models {
		m := Model{Name: x.Name, CPU: x.CPU, Count: x.Count, Memory: x.Memory}
		for _, s := range x.Seconds {
			if s == nil {
				m.Seconds = append(m.Seconds, math.Inf(1))
			} else {
				m.Seconds = append(m.Seconds, *s)
			}
		}
		t.Models = append(t.Models, m)
	}
	return t, nil
}
