// Package fake owns a GPU in Go: the driver and cuBLAS with virtual time, for
// tests of everything above them. Kernels take the time that their bytes and
// operations take at the configured rates; small data is really moved and
// computed. It is stricter than a GPU: a wait for an event that was never
// recorded, memory that is not there, and addresses that are not aligned are
// errors at the call.
//
// It knows no contention: streams, copies and devices run side by side at full
// rate. One goroutine uses it at a time.
package fake
