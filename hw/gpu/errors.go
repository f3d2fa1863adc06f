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
	NoDevice       Code = 100
	InvalidDevice  Code = 101
	InvalidContext Code = 201
	InvalidPTX     Code = 218
	InvalidHandle  Code = 400
	NotFound       Code = 500
	NotReady       Code = 600
	PeerEnabled    Code = 704
	NotSupported   Code = 801
	// Of captures: a stream that was not joined, a wait for what lies outside.
	Unjoined  Code = 904
	Isolation Code = 905
)

// codeNames are those that a measurement may meet, as CUDA 12.9 and 13.5 have them.
var codeNames = map[Code]string{
	1: "INVALID_VALUE", 2: "OUT_OF_MEMORY", 3: "NOT_INITIALIZED", 4: "DEINITIALIZED", 34: "STUB_LIBRARY", 36: "CALL_REQUIRES_NEWER_DRIVER", 46: "DEVICE_UNAVAILABLE",
	100: "NO_DEVICE", 101: "INVALID_DEVICE", 200: "INVALID_IMAGE", 201: "INVALID_CONTEXT", 209: "NO_BINARY_FOR_GPU", 214: "ECC_UNCORRECTABLE",
	217: "PEER_ACCESS_UNSUPPORTED", 218: "INVALID_PTX", 220: "NVLINK_UNCORRECTABLE", 221: "JIT_COMPILER_NOT_FOUND", 222: "UNSUPPORTED_PTX_VERSION",
	223: "JIT_COMPILATION_DISABLED", 304: "OPERATING_SYSTEM", 400: "INVALID_HANDLE", 401: "ILLEGAL_STATE", 500: "NOT_FOUND", 600: "NOT_READY",
	700: "ILLEGAL_ADDRESS", 701: "LAUNCH_OUT_OF_RESOURCES", 702: "LAUNCH_TIMEOUT", 704: "PEER_ACCESS_ALREADY_ENABLED", 709: "CONTEXT_IS_DESTROYED",
	710: "ASSERT", 711: "TOO_MANY_PEERS", 714: "HARDWARE_STACK_ERROR", 715: "ILLEGAL_INSTRUCTION", 716: "MISALIGNED_ADDRESS", 717: "INVALID_ADDRESS_SPACE",
	718: "INVALID_PC", 719: "LAUNCH_FAILED", 800: "NOT_PERMITTED", 801: "NOT_SUPPORTED", 802: "SYSTEM_NOT_READY", 803: "SYSTEM_DRIVER_MISMATCH",
	804: "COMPAT_NOT_SUPPORTED_ON_DEVICE", 805: "MPS_CONNECTION_FAILED", 900: "STREAM_CAPTURE_UNSUPPORTED", 901: "STREAM_CAPTURE_INVALIDATED",
	902: "STREAM_CAPTURE_MERGE", 903: "STREAM_CAPTURE_UNMATCHED", 904: "STREAM_CAPTURE_UNJOINED", 905: "STREAM_CAPTURE_ISOLATION",
	906: "STREAM_CAPTURE_IMPLICIT", 907: "CAPTURED_EVENT", 908: "STREAM_CAPTURE_WRONG_THREAD", 910: "GRAPH_EXEC_UPDATE_FAILURE",
	914: "INVALID_RESOURCE_TYPE", 915: "INVALID_RESOURCE_CONFIGURATION", 999: "UNKNOWN",
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

// Lacks reports whether s says that the library or the device does not have what
// was asked for: INVALID_VALUE, ARCH_MISMATCH, NOT_SUPPORTED.
func (s Status) Lacks() bool { return s == 7 || s == 8 || s == 15 }

func (s Status) Error() string {
	if n, ok := statusNames[s]; ok {
		return "CUBLAS_STATUS_" + n
	}
	return fmt.Sprintf("cuBLAS status %d", int32(s))
}
