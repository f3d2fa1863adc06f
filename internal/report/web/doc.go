// Package web owns reports as web pages, one file each, which asks nothing of the
// network: a plan on its time axis, two plans on one, a comparison of methods, the
// roofline of a card, the course of a pretraining.
//
// Text, tables and line charts are written here and need no script. The timeline is
// drawn by assets/timeline.js from the spans of a step, which the page carries as
// compressed arrays (payload.go). docs/report.md says how a page is used.
package web
