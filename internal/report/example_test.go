package report_test

import (
	"os"

	"placer/internal/report"
)

func ExampleWorkloads_WriteText() {
	published := 9021
	doc := report.Workloads{Workloads: []report.Summary{
		{Name: "rnnlm2", Ops: 9539, Edges: 15536, FLOPs: 1.18e12, Parameters: 108.1e6, PublishedOps: &published, GPUs: 2},
		{Name: "llama", Ops: 4000, Edges: 7000, FLOPs: 2e13, Parameters: 6.7e9},
	}}
	if err := doc.WriteText(report.Wide(os.Stdout)); err != nil {
		panic(err)
	}
	// Output:
	//  workload   ops  edges  FLOPs per step  parameters  published ops  difference  GPUs
	// ------------------------------------------------------------------------------------
	//  rnnlm2    9539  15536      1.18 TFLOP     108.1 M           9021       +5.7%     2
	//  llama     4000   7000     20.00 TFLOP    6700.0 M              -           -     -
}
