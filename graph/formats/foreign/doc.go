// Package foreign owns how JSON files that other programs wrote are read: keys
// that nobody asks for are skipped, everything else is as strict as in
// placer's own files, and errors name line and column.
package foreign
