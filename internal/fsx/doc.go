// Package fsx owns writing files whole or not at all, and line by line.
package fsx
