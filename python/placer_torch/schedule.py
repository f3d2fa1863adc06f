"""Schedules of a program: placer_runtime's, for the ops of a captured step."""

from __future__ import annotations

from placer_runtime.schedule import Ops, Schedule, by_priority, critical_path_order, make, parse, read, requested, single

from .graph import groups, update_control
from .program import Program

__all__ = ["Ops", "Schedule", "by_priority", "critical_path_order", "make", "ops", "parse", "read", "requested", "single"]


def ops(p: Program) -> Ops:
    """The ops of p. An update waits for those that read what it overwrites."""
    control = update_control(p)
    return Ops([o.name for o in p.ops], [[r.op for r in o.inputs()] for o in p.ops], [control.get(i, []) for i in range(len(p.ops))], groups(p), "share memory")
