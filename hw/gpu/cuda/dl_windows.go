package cuda

import "syscall"

// libcuda is where drivers keep their library.
var libcuda = [...]string{"nvcuda.dll"}

// load searches the folders that Windows searches for libraries.
func load(name string) (uintptr, error) {
	h, err := syscall.LoadLibrary(name)
	return uintptr(h), err
}

func lookUp(library uintptr, name string) (uintptr, error) {
	return syscall.GetProcAddress(syscall.Handle(library), name)
}
