package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"placer/graph"
	"placer/hw"
	"placer/internal/fsx"
	"placer/internal/jsonx"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
)

// Case is one problem of the campaign with how it is searched. It is drawn from its
// seed, and a file of it replays.
type Case struct {
	Seed        uint64
	Graph       *graph.Graph
	Machine     *hw.Machine
	Options     problem.Options
	Methods     []string
	Evaluations int
}

// Draw returns the case of seed.
func Draw(seed uint64) (*Case, error) {
	r := rand.New(rand.NewPCG(seed, 0xca4a16))
	c := &Case{Seed: seed, Evaluations: 20 + r.IntN(60)}
	var err error
	if c.Graph, err = drawGraph(r); err != nil {
		return nil, err
	}
	if c.Machine, err = drawMachine(r, c.Graph); err != nil {
		return nil, err
	}
	c.Options.Objective = []plan.Objective{plan.Step, plan.Step, plan.Step, plan.Throughput, plan.Memory}[r.IntN(5)]
	c.Options.Contention = []string{"fifo", "fifo", "fair-share", "none"}[r.IntN(4)]
	c.Options.Scheduler = []problem.Scheduler{problem.CriticalPath, problem.FIFO}[r.IntN(2)]
	c.Options.Tasks = plan.Place
	if c.Options.Objective == plan.Step {
		c.Options.Tasks |= []plan.Tasks{0, 0, plan.Schedule, plan.Fuse, plan.Schedule | plan.Fuse}[r.IntN(5)]
	}
	c.Methods = c.drawMethods(r)
	return c, nil
}

// drawMethods returns the rules, which cost little, and up to four of the others.
func (c *Case) drawMethods(r *rand.Rand) (names []string) {
	var others []string
	for _, m := range methods.ForSearch(c.problem(), methods.Default()) {
		if m.Kind == plan.Baseline {
			names = append(names, m.Name)
		} else {
			others = append(others, m.Name)
		}
	}
	r.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	return append(names, others[:min(len(others), 1+r.IntN(4))]...)
}

func (c *Case) problem() methods.Problem {
	return methods.Problem{Objective: c.Options.Objective, Tasks: c.Options.Tasks, Uncontended: c.Options.Contention == sim.Uncontended.String(), Unlayered: !c.Graph.Layered(), Machine: c.Machine, Ops: c.Graph.NumOps()}
}

// settings is the JSON form of a Case beside its graph and its machine.
type settings struct {
	Format      string   `json:"format"`
	Seed        uint64   `json:"seed"`
	Faults      []string `json:"faults"` // that were found, for the reader
	Objective   string   `json:"objective"`
	Contention  string   `json:"contention"`
	Scheduler   string   `json:"scheduler"`
	Tasks       string   `json:"tasks"`
	Methods     []string `json:"methods"`
	Evaluations int      `json:"evaluations"`
}

// Names of the files of a saved case, and the format of its settings.
const (
	graphFile, machineFile, settingsFile = "graph.json", "machine.json", "case.json"
	settingsFormat                       = "placer campaign case 1"
)

// Save writes c with the faults that were found into folder dir, for Load.
func (c *Case) Save(dir string, faults []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(
		fsx.WriteFile(filepath.Join(dir, graphFile), c.Graph.Write),
		fsx.WriteFile(filepath.Join(dir, machineFile), c.Machine.Write),
		fsx.WriteFile(filepath.Join(dir, settingsFile), func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", " ")
			return e.Encode(settings{
				settingsFormat, c.Seed, faults, string(c.Options.Objective), c.Options.Contention, string(c.Options.Scheduler),
				c.Options.Tasks.String(), c.Methods, c.Evaluations,
			})
		}),
	)
}

// Load reads what Save has written.
func Load(dir string) (*Case, error) {
	at := filepath.Join(dir, settingsFile)
	data, err := os.ReadFile(at)
	if err != nil {
		return nil, err
	}
	var s settings
	if err := jsonx.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if s.Format != settingsFormat {
		return nil, fmt.Errorf("%s: format %q, want %q", at, s.Format, settingsFormat)
	}
	c := &Case{Seed: s.Seed, Methods: s.Methods, Evaluations: s.Evaluations}
	c.Options.Contention = s.Contention
	if c.Options.Objective, err = plan.ParseObjective(s.Objective); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if c.Options.Scheduler, err = problem.ParseScheduler(s.Scheduler); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if c.Options.Tasks, err = plan.ParseTasks(s.Tasks); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if c.Machine, err = hw.ReadFile(filepath.Join(dir, machineFile)); err != nil {
		return nil, err
	}
	data, err = os.ReadFile(filepath.Join(dir, graphFile))
	if err != nil {
		return nil, err
	}
	c.Graph, err = graph.Read(data, filepath.Join(dir, graphFile))
	return c, err
}
