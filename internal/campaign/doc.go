// Package campaign owns the property campaign: random placement problems through
// the whole search, held to what must be true of every plan by a checker that shares
// no code with the simulator.
package campaign
