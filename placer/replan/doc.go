// Package replan owns the change of a plan when its machine changes: a device is lost or
// slowed, or a link is. The new plan is searched under a limit on the bytes that are
// loaded onto devices that did not hold them.
package replan
