"""Schedules of a step: placer_runtime's, for the nodes of a captured graph."""

from __future__ import annotations

from placer_runtime.schedule import Ops, Schedule, by_priority, critical_path_order, make, parse, read, requested, single

from .step import Step, source

__all__ = ["Ops", "Schedule", "by_priority", "critical_path_order", "make", "ops", "parse", "read", "requested", "single"]


def ops(s: Step) -> Ops:
    """The nodes of s. A node waits for its control inputs."""

    def inputs(control: bool) -> list[list[int]]:
        return [[s.index[source(x)] for x in n.input if x.startswith("^") == control] for n in s.graph.node]

    return Ops([n.name for n in s.graph.node], inputs(False), inputs(True), s.group, "belong together")
