// Package fsx owns writing files whole or not at all.
package fsx
