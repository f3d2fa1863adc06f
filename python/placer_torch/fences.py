"""What has to end before a step overwrites it: a parameter by its update, a buffer by its
assign. A schedule keeps that order among the ops of one device; here it is kept among all."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from placer_runtime.schedule import Ops, Schedule, by_priority

from .errors import RunError
from .program import STATE, Program, Ref


class Read(NamedTuple):
    """Op `op` of plan device `device` reads `tensor`, made on another."""

    op: int
    tensor: Ref
    device: int


def across(p: Program, o: Ops, s: Schedule) -> dict[int, list[Read]]:
    """By update or assign, the reads by other devices of what it overwrites, where no chain
    of data has them end before it."""
    found: dict[int, list[Read]] = {}
    for i, late in enumerate(o.waits):
        if late:
            target = next(p.ops[i].inputs()).op
            reads = [Read(j, r, s.device[j]) for j in late if s.device[j] != s.device[i] for r in dict.fromkeys(p.ops[j].inputs()) if p.root[r.op] == target]
            if reads:
                found[i] = reads
    return found


def order(o: Ops, s: Schedule, kernels: dict[int, list[int]]) -> list[int]:
    """The schedule's order for devices that one process issues to: what overwrites stands
    behind the readers on every device, and the ops of a kernel together, where its last
    one stood. kernels: by op, the ops of its kernel. Raises RunError where an op between
    the ops of a kernel reads one of them and is read by another."""
    units = [kernels.get(i, [i]) for i in s.order if i == kernels.get(i, [i])[-1]]
    unit = {i: k for k, members in enumerate(units) for i in members}
    needs = [sorted({unit[j] for i in members for j in o.before(i)} - {k}) for k, members in enumerate(units)]
    n = len(units)
    issued = by_priority(Ops([""] * n, needs, [()] * n, [0] * n, ""), range(n))
    if len(issued) < n:
        stuck = set(range(n)) - set(issued)
        name = next(o.names[units[k][-1]] for k in sorted(stuck) if len(units[k]) > 1)
        raise RunError(f"the kernel of op {name} cannot run at once: an op outside of it stands between its ops")
    return [i for k in issued for i in units[k]]


def views_first(p: Program, order: Sequence[int]) -> list[int]:
    """order, of one device, with the views of what is overwritten before that: a worker
    sends a view where it stands, and its readers may all be on other devices."""
    views: dict[int, list[int]] = {}
    for i, o in enumerate(p.ops):
        if o.view and p.ops[p.root[i]].role in STATE:
            views.setdefault(p.root[i], []).append(i)
    found: dict[int, None] = {}  # in order
    for i in order:
        if p.ops[i].role in ("update", "assign"):
            found.update(dict.fromkeys(views.get(next(p.ops[i].inputs()).op, ())))
        found[i] = None
    return list(found)
