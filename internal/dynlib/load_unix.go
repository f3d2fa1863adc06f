//go:build !windows

package dynlib

import "github.com/ebitengine/purego"

func load(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func lookUp(library uintptr, name string) (uintptr, error) { return purego.Dlsym(library, name) }
