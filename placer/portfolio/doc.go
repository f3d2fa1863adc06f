// Package portfolio owns the search of one problem by several methods that share one
// budget by what they bring: each starts from nothing or from the best of all, and time
// goes to those that lately improved the best plan most.
package portfolio
