// Package units owns the physical quantities: seconds, bytes, floating-point
// operations and the two rates, all in SI base units.
//
// Prefixes exist only in text: Parse functions read "900 GB/s" or "16 GiB",
// String methods print "1.50 GB". A bare number without a unit is an error in
// a file, so that no figure is ever read in the wrong unit.
package units
