//go:build (linux || darwin) && (amd64 || arm64)

package cpsat

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Library is an open libortools. It serves any number of goroutines.
type Library struct {
	name                        string
	solver                      uintptr // SolveCpInterruptible
	newEnv, destroyEnv, stopEnv uintptr
	free                        uintptr // the C library's
}

// Name returns the name that the library was opened by.
func (l *Library) Name() string { return l.name }

func open(name string) (*Library, error) {
	h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	l := &Library{name: name}
	for _, f := range []struct {
		at    *uintptr
		names []string // of versions since 9.12, of those before
	}{
		{&l.solver, []string{"SolveCpInterruptible"}},
		{&l.newEnv, []string{"SolveCpNewEnv", "SolveCpNewAtomicBool"}},
		{&l.destroyEnv, []string{"SolveCpDestroyEnv", "SolveCpDestroyAtomicBool"}},
		{&l.stopEnv, []string{"SolveCpStopSearch", "SolveCpStopSolve"}},
		{&l.free, []string{"free"}},
	} {
		for _, n := range f.names {
			if *f.at, err = purego.Dlsym(h, n); err == nil {
				break
			}
		}
		if err != nil {
			return nil, fmt.Errorf("has no %s: %w", f.names[0], err)
		}
	}
	return l, nil
}

// solve hands a serialized model and parameters over and returns a copy of the
// serialized response. The environment is what another thread may stop.
func (l *Library) solve(ctx context.Context, model, params []byte) ([]byte, error) {
	env, _, _ := purego.SyscallN(l.newEnv)
	if env == 0 {
		return nil, fmt.Errorf("cpsat: %s gives no environment", l.name)
	}
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ctx.Done():
			purego.SyscallN(l.stopEnv, env)
		case <-done:
		}
	})
	model, params = append(model, 0), append(params, 0) // so that both have an address
	answer := new(struct {
		at     unsafe.Pointer
		length int32
	})
	purego.SyscallN(l.solver, env,
		uintptr(unsafe.Pointer(&model[0])), uintptr(len(model)-1),
		uintptr(unsafe.Pointer(&params[0])), uintptr(len(params)-1),
		uintptr(unsafe.Pointer(&answer.at)), uintptr(unsafe.Pointer(&answer.length)))
	runtime.KeepAlive(model)
	runtime.KeepAlive(params)
	close(done)
	watch.Wait()
	purego.SyscallN(l.destroyEnv, env)
	if answer.at == nil {
		return nil, fmt.Errorf("cpsat: %s gives no response", l.name)
	}
	out := append([]byte(nil), unsafe.Slice((*byte)(answer.at), answer.length)...)
	purego.SyscallN(l.free, uintptr(answer.at))
	return out, nil
}
