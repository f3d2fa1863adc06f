// Package python owns the side that asks of the measuring processes of Python: placer_torch
// and placer_tensorflow. It starts `python -m PACKAGE measure --serve`, sends schedules and
// reads what their steps took (docs/pytorch.md).
package python
