// Package torch owns the side of the measuring process of the Python package
// placer_torch that asks: it starts `python -m placer_torch measure --serve`, sends
// schedules and reads what their steps took (docs/pytorch.md).
package torch
