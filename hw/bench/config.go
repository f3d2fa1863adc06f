package bench

import (
	"errors"

	"placer/hw/gpu"
	"placer/hw/nvml"
	"placer/internal/faults"
	"placer/units"
)

// Config says what is measured, and how often.
type Config struct {
	Repeats int // timed, of which the median counts
	// Target is what one repeat lasts at least; work is repeated within it.
	Target units.Seconds
	Types  []gpu.DType
	Shapes []shape
	// Bytes of the largest buffer of copies and streams.
	Buffer units.Bytes
	// Messages are the sizes of transfers.
	Messages []units.Bytes
	// State, if not nil, tells how a GPU fares; it is read while the GPU works.
	State func(uuid string) (nvml.State, error)
	// Progress, if not nil, is told what is measured next.
	Progress func(what string)
}

// shape is a matrix product.
type shape struct {
	Batch, M, N, K int
}

// Default measures all types over a grid of products: square and shallow, deep,
// thin as in inference, batched as in attention; and as training steps have them,
// of few rows, of little depth and of great depth (layers of a recurrent network
// and their gradients), tall (convolutions), of sizes that no tile divides, with
// rows that no 16 bytes divide.
func Default() Config {
	c := Config{Repeats: 7, Target: 2e-3, Buffer: 1 << 30}
	for t := gpu.F32; t < gpu.NumDTypes; t++ {
		c.Types = append(c.Types, t)
	}
	for _, n := range []int{256, 512, 1024, 2048, 4096} {
		for _, k := range []int{256, 1024, 4096} {
			c.Shapes = append(c.Shapes, shape{1, n, n, k})
		}
		c.Shapes = append(c.Shapes, shape{1, n / 4, 4 * n, 1024})
	}
	// Rows that are no multiple of 16 bytes: a vocabulary, a number of classes.
	for _, x := range [][3]int{{2048, 50257, 1024}, {1024, 1001, 1024}, {4096, 4097, 1024}, {512, 1023, 4096}, {256, 2050, 512}, {1000, 1024, 1001}} {
		c.Shapes = append(c.Shapes, shape{1, x[0], x[1], x[2]})
	}
	c.Shapes = append(c.Shapes, shape{1, 8192, 8192, 8192}, shape{1, 8192, 8192, 1024})
	for _, m := range []int{1, 16, 64} {
		c.Shapes = append(c.Shapes, shape{1, m, 1024, 1024}, shape{1, m, 4096, 4096})
	}
	for _, n := range []int{64, 128, 256} {
		c.Shapes = append(c.Shapes, shape{16, n, n, 64}, shape{64, n, n, 128}, shape{16, n, n, n})
	}
	for _, x := range [][3]int{
		{64, 8192, 4096}, {64, 1024, 4096}, {64, 4096, 1024}, {128, 2048, 8192},
		{4096, 8192, 64}, {1024, 4096, 64}, {1024, 1024, 64}, {8192, 1024, 128},
		{131072, 256, 256}, {131072, 128, 128}, {262144, 64, 288}, {16384, 192, 768},
		{256, 256, 131072}, {128, 128, 131072}, {288, 64, 262144}, {768, 192, 16384},
		{4096, 500, 1000}, {500, 1000, 4096},
	} {
		c.Shapes = append(c.Shapes, shape{1, x[0], x[1], x[2]})
	}
	c.Shapes = append(c.Shapes, shape{640, 128, 64, 64}, shape{640, 64, 64, 128})
	for b := units.Bytes(1 << 10); b <= 256<<20; b *= 4 {
		c.Messages = append(c.Messages, b)
	}
	return c
}

// validate reports every fault of c.
func (c *Config) validate() error {
	var errs faults.List
	errs.If(c.Repeats < 3, "%d repeats, want at least 3", c.Repeats)
	errs.If(!(c.Target > 0 && c.Target < 10), "a repeat of %v, want above 0 and below 10 s", c.Target)
	errs.If(c.Buffer < 1<<20, "a buffer of %v, want at least 1 MiB", c.Buffer)
	errs.If(len(c.Messages) < 3, "%d sizes of messages, want at least 3", len(c.Messages))
	for _, s := range c.Shapes {
		errs.If(s.Batch < 1 || s.M < 1 || s.N < 1 || s.K < 1, "product %v, want positive dimensions", s)
	}
	return errors.Join(errs...)
}
