package cuda

// libcuda is where drivers keep their library.
var libcuda = [...]string{"nvcuda.dll"}
