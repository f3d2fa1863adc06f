// Package robust owns the judgement of a plan by a quantile of its step times on machines
// that are not quite what their files say: op times and links are off by factors, as
// predictions are.
package robust
