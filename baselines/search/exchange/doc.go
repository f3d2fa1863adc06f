// Package exchange owns local search of small problems by exchanges: every single change of
// a plan (ops to another device, an op before another one, the fusion of an op), then every
// two at once, until none helps; then a few at random, and again.
package exchange
