package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"placer/hw"
	"placer/internal/report"
	"placer/placer/check"
	"placer/plan"
	"placer/plan/formats"
	"placer/sim/schedule"
)

// errFindings is the error of a check that fails.
var errFindings = errors.New("the placement has faults")

func (c *console) checkCommand() *cobra.Command {
	var in inputFlags
	var planFile, contention string
	var static, strict, asJSON bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find the faults of a placement and the change that mends each",
		Long: "check reads a placement, as a plan of this program or in another program's form, and\n" +
			"reports what cannot run, what does not fit, and what costs time without need. For a\n" +
			"warning, the change has been simulated and shortens the step by at least 0.1%. The\n" +
			"exit code is 1 where there is an error, or with --strict a warning, and 0 otherwise.",
		Example: "  placer check --workload gnmt8 --gpus 8 --plan runs/gnmt8-p100-1/plan.json\n" +
			"  placer check --graph model.onnx --machine box.json --plan device_map.json --strict\n" +
			"  placer check --graph bert24_training.json --plan split.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := in.check(cmd, planFile); err != nil {
				return err
			}
			l, m, err := c.loadUnder(&in, contention)
			if err != nil {
				return err
			}
			p, err := c.placement(planFile, &l, m)
			if err != nil {
				return err
			}
			if static && p.Order == nil {
				p.ByPriority(m)
			}
			r, err := check.Check(cmd.Context(), &check.Case{Source: l.Source, Machine: m, Placement: p, Contention: contention})
			if err != nil {
				return err
			}
			if err := c.print(asJSON, report.Checked(l.Graph, m, r)); err != nil {
				return err
			}
			if r.Count(check.Error) > 0 || strict && len(r.Findings) > 0 {
				return errFindings
			}
			return nil
		},
	}
	in.add(cmd.Flags())
	cmd.Flags().StringVar(&planFile, "plan", "", "`FILE`: plan, schedule, device map, stages or split (JSON); - reads stdin; a PipeDream profile as --graph brings its own stages")
	cmd.Flags().StringVar(&contention, "contention", "", "how transfers share links: fifo, fair-share or none (default the file's)")
	cmd.Flags().BoolVar(&static, "static", false, "the runtime runs each device's ops strictly by the plan's priorities: look for deadlocks")
	cmd.Flags().BoolVar(&strict, "strict", false, "end with 1 for warnings too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// placement reads the placement in the file at path; its keys say what form it has. l
// becomes what a plan is for, with its changes.
func (c *console) placement(path string, l *loaded, m *hw.Machine) (*check.Placement, error) {
	if path == "" {
		if l.file.Profile != nil {
			if stage, n := l.file.Profile.Stages(); n > 0 {
				return &check.Placement{Decision: plan.Decision{Device: stage}}, nil
			}
		}
		return nil, usagef("name a placement by --plan")
	}
	data, err := c.readPlacement(path)
	if err != nil {
		return nil, err
	}
	path = inputName(path)
	if t, other := formats.IsTarget(data); other && t.Name != "accelerate" { // whose faults are findings
		q, err := formats.Read(data, path, l.Graph, m)
		if err != nil {
			return nil, err
		}
		return &check.Placement{Decision: q.Decision}, nil
	}
	var head placementHead
	if err := json.Unmarshal(data, &head); err != nil {
		var keys map[string]json.RawMessage // a module may have one of these names
		if err := json.Unmarshal(data, &keys); err != nil {
			if json.Valid(data) {
				return nil, fmt.Errorf("%s: is not a JSON object: want a plan, a device map, stages or a split", path)
			}
			return nil, fmt.Errorf("%s: not JSON: %w", path, err)
		}
	}
	p, err := head.read(data, path, l, m)
	if err != nil {
		if msg := err.Error(); len(msg) > len(path) && msg[:len(path)] == path {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// placementHead is what tells the forms of placements in JSON apart.
type placementHead struct {
	Format    string          `json:"format"`
	FPGAs     json.RawMessage `json:"fpgas"`
	CPUs      json.RawMessage `json:"cpus"`
	Stages    [][]string      `json:"stages"`
	DeviceMap json.RawMessage `json:"device_map"`
}

// read reads data, the content of the file at path, in the form that h tells.
func (h *placementHead) read(data []byte, path string, l *loaded, m *hw.Machine) (*check.Placement, error) {
	switch {
	case h.Format == plan.Format || h.Format == plan.ChangedFormat:
		f, err := plan.Read(bytes.NewReader(data), path)
		if err != nil {
			return nil, err
		}
		if err := l.change(f); err != nil {
			return nil, err
		}
		return check.FromPlan(f, l.Graph, m)
	case h.Format == schedule.Format:
		return readSchedule(data, l, m)
	case h.Format != "":
		return nil, fmt.Errorf("format is %q, want %q, %q, or a device map, stages or a split", h.Format, plan.Format, schedule.Format)
	case l.file.Partitioning != nil && (h.FPGAs != nil || h.CPUs != nil):
		s, err := l.file.Partitioning.ReadSplit(data, path)
		if err != nil {
			return nil, err
		}
		return &check.Placement{Decision: plan.Decision{Device: s.Device}}, nil
	case h.Stages != nil:
		return check.FromMap(h.stages(), l.Graph, m), nil
	case h.DeviceMap != nil:
		data = h.DeviceMap
	}
	entries, err := readDeviceMap(data)
	if err != nil {
		return nil, err
	}
	return check.FromMap(entries, l.Graph, m), nil
}

// stages returns the modules of each stage with the number of its device, the stage's.
func (h *placementHead) stages() (entries []check.Entry) {
	for k, names := range h.Stages {
		for _, n := range names {
			entries = append(entries, check.Entry{Prefix: n, Device: fmt.Sprint(k)})
		}
	}
	return entries
}

// readDeviceMap reads an object from module or op to device, a name or a number, in the
// order of the file.
func readDeviceMap(data []byte) (entries []check.Entry, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("a device map is an object from module or op to device")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case string:
			entries = append(entries, check.Entry{Prefix: key.(string), Device: v})
		case json.Number:
			entries = append(entries, check.Entry{Prefix: key.(string), Device: v.String()})
		default:
			return nil, fmt.Errorf("entry %q: want a device's name or number", key)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, errors.New("a device map without an entry")
	}
	return entries, nil
}

// readSchedule reads a schedule, whose devices run their ops in the file's order.
func readSchedule(data []byte, l *loaded, m *hw.Machine) (*check.Placement, error) {
	var s struct {
		Graph struct{ Hash string }
		Ops   []check.Scheduled
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	if s.Graph.Hash != l.Hash() {
		return nil, fmt.Errorf("schedule is for graph %.12s, not for %s (%.12s)", s.Graph.Hash, l.Name(), l.Hash())
	}
	return check.FromSchedule(s.Ops, l.Graph, m), nil
}
