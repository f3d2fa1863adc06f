// Command verdict prints the recorded verdicts of this folder as the Markdown
// table of docs/answers.md. See run.sh beside it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"placer/internal/report"
	"placer/units"
)

func main() {
	if err := run(os.Stdout, "experiments/verdict"); err != nil {
		fmt.Fprintln(os.Stderr, "verdict:", err)
		os.Exit(1)
	}
}

// run prints the rows of every model that run.sh asks about, from the documents
// in folder.
func run(w io.Writer, folder string) error {
	fmt.Fprintln(w, "| model | machine | n | step | samples/s | efficiency | fullest device | proven bound | FLOPs at peak | lacks |")
	fmt.Fprintln(w, "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, m := range []struct{ file, name string }{
		{"llama", "7B decoder (`llama`)"},
		{"llama70b", "70B decoder (`llama70b`)"},
		{"moe", "mixture of experts (`moe`)"},
		{"vitl", "ViT-L (`vitl`)"},
		{"resnet50", "ResNet-50, ONNX"},
		{"gnmt8", "GNMT (`gnmt8`)"},
	} {
		for i, machine := range []string{"a100", "h100", "box"} {
			name := m.name
			if i > 0 {
				name = ""
			}
			if err := rows(w, filepath.Join(folder, m.file+"-"+machine+".json"), name); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows prints a document's rows; the first has the model's name and the machine's.
func rows(w io.Writer, file, name string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var v report.Verdict
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(v.Machines) != 1 {
		return fmt.Errorf("%s: %d machines, want one", file, len(v.Machines))
	}
	machine := v.Machines[0].Name
	for _, r := range v.Rows {
		count := fmt.Sprint(r.Devices)
		if r.Devices == v.Machines[0].Fewest {
			count = "**" + count + "**"
		}
		var step, rate, efficiency, fullest, bound, lacks string
		if r.Feasible {
			var most int64
			for _, b := range r.Peak {
				most = max(most, b)
			}
			step, rate, fullest = units.Seconds(r.StepTime).String(), fmt.Sprintf("%.4g", r.Rate), gigabytes(most)
		} else {
			step, lacks = "does not fit", gigabytes(r.Missing)
		}
		if r.Efficiency != nil {
			efficiency = fmt.Sprintf("%.0f%%", *r.Efficiency*100)
		}
		if r.LowerBound > 0 {
			bound = units.Seconds(r.LowerBound).String()
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
			name, machine, count, step, rate, efficiency, fullest, bound, units.Seconds(r.AtPeak), lacks)
		name, machine = "", ""
	}
	return nil
}

func gigabytes(b int64) string { return fmt.Sprintf("%.2f GB", float64(b)/1e9) }
