package gpu

import (
	"errors"
	"fmt"
)

// ErrNoDevice says that there is no GPU, or no driver for it.
var ErrNoDevice = errors.New("no GPU")

// ErrNoBLAS says that no cuBLAS was found.
var ErrNoBLAS = errors.New("no cuBLAS")

// Code is an error of the CUDA driver (CUresult).
type Code int32

// Codes that callers look for.
const (
	InvalidValue   Code = 1
	OutOfMemory    Code = 2
	NotInitialized Code = 3
	NoDevice       Code = 100
	InvalidDevice  Code = 101
	InvalidContext Code = 201
	InvalidPTX     Code = 218
	InvalidHandle  Code = 400
	NotFound       Code = 500
	NotReady       Code = 600
	PeerEnabled    Code = 704
)

var codeNames = map[Code]string{
	1: "INVALID_VALUE", 2: "OUT_OF_MEMORY", 3: "NOT_INITIALIZED", 34: "STUB_LIBRARY", 100: "NO_DEVICE", 101: "INVALID_DEVICE",
	200: "INVALID_IMAGE", 201: "INVALID_CONTEXT", 209: "NO_BINARY_FOR_GPU", 217: "PEER_ACCESS_UNSUPPORTED", 218: "INVALID_PTX",
	222: "UNSUPPORTED_PTX_VERSION", 400: "INVALID_HANDLE", 500: "NOT_FOUND", 600: "NOT_READY", 700: "ILLEGAL_ADDRESS",
	701: "LAUNCH_OUT_OF_RESOURCES", 704: "PEER_ACCESS_ALREADY_ENABLED", 716: "MISALIGNED_ADDRESS", 719: "LAUNCH_FAILED",
	801: "NOT_SUPPORTED", 803: "SYSTEM_DRIVER_MISMATCH", 900: "STREAM_CAPTURE_UNSUPPORTED", 901: "STREAM_CAPTURE_INVALIDATED",
	906: "STREAM_CAPTURE_UNJOINED", 907: "CAPTURED_EVENT", 908: "STREAM_CAPTURE_WRONG_THREAD", 999: "UNKNOWN",
}

func (c Code) Error() string {
	if n, ok := codeNames[c]; ok {
		return "CUDA_ERROR_" + n
	}
	return fmt.Sprintf("CUDA error %d", int32(c))
}

// Is makes a driver that finds no device count as ErrNoDevice.
func (c Code) Is(target error) bool { return c == NoDevice && target == ErrNoDevice }

// Status is an error of cuBLAS (cublasStatus_t).
type Status int32

var statusNames = map[Status]string{
	1: "NOT_INITIALIZED", 3: "ALLOC_FAILED", 7: "INVALID_VALUE", 8: "ARCH_MISMATCH", 11: "MAPPING_ERROR", 13: "EXECUTION_FAILED",
	14: "INTERNAL_ERROR", 15: "NOT_SUPPORTED", 16: "LICENSE_ERROR",
}

func (s Status) Error() string {
	if n, ok := statusNames[s]; ok {
		return "CUBLAS_STATUS_" + n
	}
	return fmt.Sprintf("cuBLAS status %d", int32(s))
}
