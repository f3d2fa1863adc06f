package device

import (
	_ "embed"
	"fmt"
	"math"

	"placer/hw/gpu"
)

//go:embed kernels.ptx
var ptx string

// kernel is one of the kernels of kernels.cu.
type kernel int

const (
	kZero kernel = iota
	kBiasAct
	kActBack
	kGatherMax
	kGatherBack
	kLayerNorm
	kLayerNormBack
	kColSum
	kDSum
	kMulRep
	kMulSum
	kAddRep
	kSumRep
	kEmbed
	kEmbedBack
	kMask
	kSoftmax
	kSoftmaxAgain
	kSoftmaxBack
	kAddMemory
	kColumns
	kSpread
	kPPO
	kSquares
	kAdam
	numKernels
)

// kernelNames and kernelWords are the names of the kernels and the numbers of
// their parameters.
var kernelNames = [numKernels]string{"zero", "bias_act", "act_back", "gather_max", "gather_back", "layer_norm", "layer_norm_back", "colsum", "dsum", "mul_rep", "mul_sum",
	"add_rep", "sum_rep", "embed", "embed_back", "masked", "softmax", "softmax_again", "softmax_back", "add_memory", "columns", "spread", "ppo", "squares", "adam"}
var kernelWords = [numKernels]int{2, 5, 5, 7, 8, 9, 13, 7, 5, 6, 6, 5, 5, 7, 7, 7, 8, 8, 11, 4, 7, 6, 17, 3, 10}

const (
	block = 256
	// sumRows is the number of rows that one block adds up: each thread reads them
	// one behind the other, so few rows are a short wait and many blocks. sumLevels
	// rounds leave few for the last block, of a million rows 31.
	sumRows   = 32
	sumLevels = 3
	// embedRows are those of embed_back, which writes a table for each block.
	embedRows = 128
	// squareBlocks blocks add up the squares of one parameter's gradient.
	squareBlocks = 32
	squareWarps  = squareBlocks * block / 32
)

func (d *Device) load() error {
	m, err := d.driver.LoadPTX(ptx)
	if err != nil {
		return fmt.Errorf("kernels of the policy: %w", err)
	}
	for k, name := range kernelNames {
		if d.kernels[k], err = d.driver.Func(m, name); err != nil {
			return fmt.Errorf("kernel %s: %w", name, err)
		}
	}
	return nil
}

func bits(x float32) uint64 { return uint64(math.Float32bits(x)) }

func flag(x bool) uint64 {
	if x {
		return 1
	}
	return 0
}

// launch runs k on grid blocks. After a failure it does nothing; see Device.leave.
func (d *Device) launch(k kernel, grid, threads uint64, args ...uint64) {
	if d.err != nil {
		return
	}
	if len(args) != kernelWords[k] {
		panic(fmt.Sprintf("policy: kernel %s with %d parameters, want %d", kernelNames[k], len(args), kernelWords[k]))
	}
	if err := d.driver.Launch(d.kernels[k], uint32(grid), uint32(threads), d.stream, d.args[:copy(d.args[:], args)]); err != nil {
		d.fail(fmt.Errorf("kernel %s: %w", kernelNames[k], err))
	}
}

// each runs k with a thread for each of n elements.
func (d *Device) each(k kernel, n int, args ...uint64) {
	if n > 0 {
		d.launch(k, max(1, min(uint64(32*d.sms), uint64(n+block-1)/block)), block, args...)
	}
}

// eachRow runs k with a warp for each of n rows.
func (d *Device) eachRow(k kernel, n int, args ...uint64) { d.each(k, 32*n, args...) }

// wide is the number of threads for columns columns.
func wide(columns int) uint64 { return uint64(min(1024, (columns+31)/32*32)) }

// colsum writes or adds to out [columns] the sums of the columns of x [rows,
// columns], times scale.
func (d *Device) colsum(x gpu.Ptr, rows, columns int, out gpu.Ptr, scale float32, add bool) {
	for level := range sumLevels {
		blocks := (rows + sumRows - 1) / sumRows
		if blocks <= 1 {
			break
		}
		part := d.scratch(keySum+level, 4*blocks*columns)
		d.launch(kColSum, uint64(blocks), wide(columns), uint64(x), uint64(part), uint64(rows), uint64(columns), sumRows, bits(1), 0)
		x, rows = part, blocks
	}
	d.launch(kColSum, 1, wide(columns), uint64(x), uint64(out), uint64(rows), uint64(columns), uint64(rows), bits(scale), flag(add))
}

// dsum returns the sums of the columns of doubles x [rows,columns], on the host.
func (d *Device) dsum(x gpu.Ptr, rows, columns int) []float64 {
	for level := range sumLevels {
		blocks := (rows + sumRows - 1) / sumRows
		if blocks <= 1 {
			break
		}
		part := d.scratch(keySum+level, 8*blocks*columns)
		d.launch(kDSum, uint64(blocks), wide(columns), uint64(x), uint64(part), uint64(rows), uint64(columns), sumRows)
		x, rows = part, blocks
	}
	out := d.scratch(keySum+sumLevels, 8*columns)
	d.launch(kDSum, 1, wide(columns), uint64(x), uint64(out), uint64(rows), uint64(columns), uint64(rows))
	sums := make([]float64, columns)
	download(d, sums, out)
	d.sync()
	return sums
}
