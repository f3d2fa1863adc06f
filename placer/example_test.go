package placer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"placer/hw"
	"placer/placer"
	"placer/placer/problem"
	"placer/plan"
	"placer/units"
)

// Example is the first program of docs/library.md: a forward graph of SqueezeNet on two
// GPUs is read, placed and simulated.
func Example() {
	machine, err := hw.Take("p100", 2, false) // two GPUs, without the CPU
	check(err)
	p, err := placer.Read("../graph/formats/onnx/testdata/light_squeezenet.onnx", machine, problem.Options{Tasks: plan.AllTasks})
	check(err)
	best, step, err := placer.Place(context.Background(), p, 500, 1) // evaluations, seed
	check(err)
	fmt.Printf("%d ops, %d kernels: step %v, none below %v\n", p.Graph.NumOps(), step.Kernels, step.Makespan, units.Seconds(p.Bound))
	for d, peak := range step.PeakBytes {
		fmt.Printf("%s: busy %v, peak %v\n", machine.Devices[d].Name, step.Busy[d], peak)
	}
	file, err := best.File(p.Graph, machine) // file.Write: what the commands read as --plan
	check(err)
	fmt.Println("a plan of", file.Method, "for", file.MachineName)
	// Output:
	// 119 ops, 84 kernels: step 396.6 us, none below 182.7 us
	// gpu:0: busy 396.6 us, peak 8.87 MB
	// gpu:1: busy 0 s, peak 0 B
	// a plan of zero-shot for p100
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// TestLibraryPage: the first program of docs/library.md is Example, with a file of the
// reader's, and the page shows what it prints.
func TestLibraryPage(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(source), "func Example() {\n")
	body, printed, _ := strings.Cut(body, "\t// Output:\n")
	printed, _, _ = strings.Cut(printed, "}\n")
	body = strings.ReplaceAll(body, "../graph/formats/onnx/testdata/light_squeezenet.onnx", "model.onnx")
	_, shown, _ := strings.Cut(string(page), "```go\n")
	program, shown, _ := strings.Cut(shown, "```\n")
	_, main, _ := strings.Cut(program, "func main() {\n")
	main, rest, _ := strings.Cut(main, "}\n\nfunc check")
	if main != body {
		t.Errorf("docs/library.md does not show the program of Example, but\n%s", main)
	}
	if _, want, _ := strings.Cut(string(source), "\nfunc check"); !strings.HasPrefix(want, rest) || rest == "" {
		t.Errorf("docs/library.md has another check:\n%s", rest)
	}
	for _, line := range strings.Split(printed, "\n") {
		if line = strings.TrimPrefix(strings.TrimSpace(line), "// "); !strings.Contains(shown, line) {
			t.Errorf("docs/library.md does not show that the program prints %q", line)
		}
	}
	imports, _, _ := strings.Cut(program, ")\n")
	for _, line := range strings.Split(imports, "\n") {
		if strings.Contains(line, `"`) && !strings.Contains(string(source), line+"\n") {
			t.Errorf("docs/library.md imports %s, which Example does not", line)
		}
	}
}
