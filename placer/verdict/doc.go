// Package verdict owns the answer to "how many devices pay?": the best plan found for
// every count of devices of some machines, what it takes, and which count is enough.
//
// The sweep goes from few devices to many, and what was found for fewer seeds the
// search for more, so that more devices are never worse. Machines seed each other too.
package verdict
