package kernel

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"placer/hw/gpu"
)

// prelude is what kernels.cu needs of CUDA, for a compiler of the host.
const prelude = `
#include <cstdio>
#define __device__
#define __global__
struct float4 { float x, y, z, w; };
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static struct { unsigned x; } gridDim, blockDim, blockIdx, threadIdx;
`

// harness fills words, streams them, and writes both and what lies behind to stdout.
// Its threads run one after another.
const harness = `
static unsigned in[N + 4], out[N + 4];
template <class F> static void launch(unsigned grid, unsigned block, F kernel) {
  gridDim.x = grid; blockDim.x = block;
  for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++)
    for (threadIdx.x = 0; threadIdx.x < block; threadIdx.x++) kernel();
}
int main() {
  for (int i = 0; i < 4; i++) out[N + i] = 77;
  launch(3, 32, [] { fill((u64)in, N, SEED, KEEP, SET); });
  launch(2, 64, [] { rw((u64)in, N / 4, (u64)out, N / 4, 0); });
  fwrite(in, 4, N, stdout);
  fwrite(out, 4, N + 4, stdout);
}
`

// TestStreamCopies: a stream without arithmetic copies every word, those that are
// left over from four at a time too, and nothing behind them.
func TestStreamCopies(t *testing.T) {
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler to run kernels.cu on the host")
	}
	text, err := os.ReadFile("kernels.cu")
	if err != nil {
		t.Fatal(err)
	}
	kernels, behind, ok := strings.Cut(string(text), "// spin holds") // which only a GPU's clock ends
	_, nop, found := strings.Cut(behind, "// nop is")
	if !ok || !found {
		t.Fatal("kernels.cu has no spin before nop")
	}
	for _, n := range []string{"4", "1000", "8192"} {
		dir := t.TempDir()
		source, program := filepath.Join(dir, "host.cpp"), filepath.Join(dir, "host")
		if err := os.WriteFile(source, []byte(prelude+kernels+"// nop is"+nop+harness), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"-O1", "-w", "-DN=" + n, "-DSEED=5", "-DKEEP=0x807fffff", "-DSET=0x3f000000", "-o", program, source}
		if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		out, err := exec.Command(program).Output()
		if err != nil {
			t.Fatal(err)
		}
		words := len(out)/8 - 2
		word := func(i int) uint32 { return binary.LittleEndian.Uint32(out[4*i:]) }
		for i := range words {
			if want := Word(uint64(i), gpu.F32, 5); word(i) != want || word(words+i) != want {
				t.Fatalf("of %d words, word %d was filled with %08x and copied as %08x, want %08x", words, i, word(i), word(words+i), want)
			}
		}
		for i := range 4 {
			if got := word(2*words + i); got != 77 {
				t.Errorf("of %d words, word %d behind them became %08x", words, i, got)
			}
		}
	}
}
