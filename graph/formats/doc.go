// Package formats owns which form a graph file is in: Forms is the table of those
// that are read, each with how it is recognised and who reads it. A file is
// recognised by its content, never by its name.
//
// The readers themselves are the packages below this one. To add a form, write its
// package and add its line to Forms.
package formats
