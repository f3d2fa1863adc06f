package tfevents_test

import (
	"bytes"
	"fmt"

	"placer/internal/tfevents"
)

// Example logs two steps of a training.
func Example() {
	var file bytes.Buffer // os.Create(filepath.Join(dir, tfevents.FileName(...))) in earnest
	w, err := tfevents.NewWriter(&file, func() float64 { return 1.5e9 })
	if err != nil {
		fmt.Println(err)
		return
	}
	for step, reward := range []float64{-0.9, -0.7} {
		err := w.Write(int64(step), tfevents.Scalar("train/reward", reward), tfevents.Histogram("train/advantage", []float64{-1, 0, 1}))
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(tfevents.FileName(1500000000, "host", 7))
	fmt.Printf("% x\n", file.Bytes()[:12]) // as files of TensorFlow's own begin
	// Output:
	// events.out.tfevents.1500000000.host.7.0
	// 18 00 00 00 00 00 00 00 a3 7f 4b 22
}
