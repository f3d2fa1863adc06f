// Package bench owns the measurement of GPUs: rates of matrix products,
// bandwidths, launch times and the links between devices, each the median of
// repeats timed by events on the device, and the machine and the roofline
// constants that follow from them.
//
// Data is random, since zeros make products cheaper. Every timed piece runs at
// least once untimed before. Buffers rotate over twice the cache. Kernels are
// timed within a captured graph, so that the host's issuing is no part of their
// time. Clocks are read while the device works, and never changed.
package bench
