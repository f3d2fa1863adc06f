// Package strategies owns the property campaign of strategies: random models on random machines,
// whose rows are held to what must be true of every one.
package strategies
