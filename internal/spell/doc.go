// Package spell owns what a mistyped name was probably meant to be.
package spell
