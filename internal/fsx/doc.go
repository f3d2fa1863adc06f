// Package fsx owns reading files of bounded size, which gzip may have compressed, and writing
// them whole or not at all, and line by line.
package fsx
