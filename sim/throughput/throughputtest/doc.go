// Package throughputtest owns random small instances of the throughput objective and
// their exhaustive solution, for tests.
package throughputtest
