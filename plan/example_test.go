package plan_test

import (
	"fmt"
	"os"
	"strings"

	"placer/plan"
)

func Example() {
	f, err := plan.Read(strings.NewReader(`{"format": "placer plan 1",
		"graph": {"name": "mlp", "hash": "5f3a"}, "machine": {"name": "p100x2", "hash": "0c11"},
		"method": "human expert", "devices": ["gpu:0", "gpu:1"], "device": [0, 0, 1]}`), "plan.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, d := range f.Device {
		fmt.Println("op", i, "on", f.Devices[d])
	}
	f.Priority = []int32{1, 0, 2}
	if err := f.Write(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// op 0 on gpu:0
	// op 1 on gpu:0
	// op 2 on gpu:1
	// {"format": "placer plan 1",
	// "graph": {"name": "mlp", "hash": "5f3a"},
	// "machine": {"name": "p100x2", "hash": "0c11"},
	// "method": "human expert",
	// "devices": ["gpu:0", "gpu:1"],
	// "device": [
	// 0, 0, 1
	// ],
	// "priority": [
	// 1, 0, 2
	// ]}
}
