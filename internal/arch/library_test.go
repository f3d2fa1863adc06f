package arch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/baselines/rules"
	"placer/graph/formats"
	"placer/graph/formats/onnx"
	"placer/graph/train"
	"placer/hw"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
)

// Example is the second program of docs/library.md.
func Example() {
	err := func() error {
		// A forward graph from a file, and its training step.
		file, err := formats.ReadFile("../../graph/formats/onnx/testdata/light_squeezenet.onnx", onnx.Default())
		if err != nil {
			return err
		}
		how := train.Default()
		how.StaticShapes = true // every dimension of this file is known
		step, err := train.Derive(file.Graph, how)
		if err != nil {
			return err
		}
		// Two GPUs of a built-in machine.
		machine, err := hw.Take("h100", 2, false)
		if err != nil {
			return err
		}
		// What every method is asked: placement alone, by step time.
		p, err := problem.New(problem.Source{Graph: step}, machine, problem.Options{})
		if err != nil {
			return err
		}
		p.Budget = plan.Budget{Evaluations: 500}
		// Two methods, one by its type and one by its name.
		expert, err := rules.Expert().Place(context.Background(), &p.Problem)
		if err != nil {
			return err
		}
		annealing, err := methods.Find("anneal")
		if err != nil {
			return err
		}
		search, err := annealing.New(methods.Default())
		if err != nil {
			return err
		}
		found, err := search.Place(context.Background(), &p.Problem)
		if err != nil {
			return err
		}
		fmt.Println("shorter than the expert's step:", found.Score.Better(expert.Score))
		fmt.Println("not below the bound:", found.Score.Value >= p.Bound)
		// The plan, simulated in full.
		best := &plan.Plan{Graph: step.Hash(), Machine: machine.Name, Method: search.Name(), Decision: found.Decision}
		if best.Priority == nil {
			best.Priority = p.Priority
		}
		result, err := p.Simulator.Run(best, sim.Options{})
		if err != nil {
			return err
		}
		fmt.Println("the same step time:", float64(result.Makespan) == found.Score.Value)
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// shorter than the expert's step: true
	// not below the bound: true
	// the same step time: true
}

// TestLibraryPage: docs/library.md shows the program of Example, behind its first one.
func TestLibraryPage(t *testing.T) {
	source, err := os.ReadFile("library_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "library.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(source), "\terr := func() error {\n")
	body, _, _ = strings.Cut(body, "\t}()\n")
	want := strings.ReplaceAll("\n"+body, "\n\t\t", "\n")
	want = strings.ReplaceAll(want, "../../graph/formats/onnx/testdata/light_squeezenet.onnx", "model.onnx")
	imports, _, _ := strings.Cut(string(source), "\n)\n")
	for _, line := range strings.Split(imports, "\n") {
		if name := strings.Trim(line, "\t\""); strings.HasPrefix(name, "placer/") && !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/library.md does not say that the program imports %s", name)
		}
	}
	_, shown, _ := strings.Cut(string(page), "## The parts")
	_, shown, _ = strings.Cut(shown, "```go\n")
	shown, _, _ = strings.Cut(shown, "```")
	if strings.TrimSpace(shown) != strings.TrimSpace(want) {
		t.Errorf("docs/library.md does not show the program of Example:\n%s", want)
	}
}
