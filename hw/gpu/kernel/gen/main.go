// Command gen compiles kernels.cu to kernels.ptx with NVRTC, which needs no GPU:
//
//	go run ./hw/gpu/kernel/gen -nvrtc libnvrtc.so.12
//
// The text that NVRTC writes names its own PTX version, which older drivers
// refuse; the kernels use nothing newer than version 6.0, so that is what the
// file says.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"

	"placer/internal/fsx"
)

func main() {
	library := flag.String("nvrtc", "libnvrtc.so.12", "NVRTC library")
	dir := flag.String("dir", "hw/gpu/kernel", "folder of kernels.cu")
	flag.Parse()
	if err := run(*library, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(library, dir string) error {
	source, err := os.ReadFile(dir + "/kernels.cu")
	if err != nil {
		return err
	}
	ptx, err := compile(library, source)
	if err != nil {
		return err
	}
	for _, r := range [][2]string{{`(?m)^//.*\n`, ""}, {`(?m)^\.version .*$`, ".version 6.0"}, {`\n{2,}`, "\n"}} {
		ptx = regexp.MustCompile(r[0]).ReplaceAll(ptx, []byte(r[1]))
	}
	head := fmt.Sprintf("// Code generated from kernels.cu by gen. DO NOT EDIT.\n// sha256 %x\n", sha256.Sum256(source))
	return fsx.WriteFile(dir+"/kernels.ptx", func(w io.Writer) error {
		_, err := w.Write(append([]byte(head), ptx...))
		return err
	})
}

// compile returns the PTX of source for the oldest architecture that NVRTC 12
// knows and that has what the kernels use.
func compile(library string, source []byte) ([]byte, error) {
	h, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	var create func(prog *uintptr, src, name *byte, headers int32, a, b unsafe.Pointer) int32
	var build func(prog uintptr, options int32, option unsafe.Pointer) int32
	var size, logSize func(prog uintptr, n *uint64) int32
	var text, log func(prog uintptr, out *byte) int32
	for name, f := range map[string]any{"nvrtcCreateProgram": &create, "nvrtcCompileProgram": &build, "nvrtcGetPTXSize": &size,
		"nvrtcGetPTX": &text, "nvrtcGetProgramLogSize": &logSize, "nvrtcGetProgramLog": &log} {
		purego.RegisterLibFunc(f, h, name)
	}
	src, name, arch := append(source[:len(source):len(source)], 0), []byte("kernels.cu\x00"), []byte("--gpu-architecture=compute_60\x00")
	var prog uintptr
	if r := create(&prog, &src[0], &name[0], 0, nil, nil); r != 0 {
		return nil, fmt.Errorf("nvrtcCreateProgram: %d", r)
	}
	var pin runtime.Pinner
	pin.Pin(&arch[0])
	defer pin.Unpin()
	options := [1]*byte{&arch[0]}
	if r := build(prog, 1, unsafe.Pointer(&options)); r != 0 {
		var n uint64
		logSize(prog, &n)
		out := make([]byte, n+1)
		log(prog, &out[0])
		return nil, fmt.Errorf("nvrtcCompileProgram: %d: %s", r, out)
	}
	var n uint64
	if r := size(prog, &n); r != 0 || n == 0 {
		return nil, fmt.Errorf("nvrtcGetPTXSize: %d", r)
	}
	out := make([]byte, n)
	if r := text(prog, &out[0]); r != 0 {
		return nil, fmt.Errorf("nvrtcGetPTX: %d", r)
	}
	return out[:n-1], nil
}
