"""Learning rates that can change between the steps of a loop."""

from __future__ import annotations

import dataclasses
import mmap
from typing import Any, Sequence

from .errors import RunError
from .optim import Hyper
from .program import Program


class Rates:
    """The learning rate of each of an optimizer's parameter groups, in memory that the
    worker processes share, which read it in every update."""

    def __init__(self, p: Program):
        updates = [o for o in p.ops if o.role == "update"]
        # files that earlier versions wrote have no groups: those of one rate are one
        first = p.rates or list(dict.fromkeys(float(o.args[3]["lr"]) for o in updates))
        self._cells: memoryview[float] = memoryview(mmap.mmap(-1, 8 * max(1, len(first)))).cast("d")
        self._count = len(first)
        self.set(first)
        live = {id(o): _Live(o.args[3], self._cells, o.args[3].get("group", -1) if p.rates else first.index(o.args[3]["lr"])) for o in updates}
        self.program = dataclasses.replace(p, ops=[dataclasses.replace(o, args=(*o.args[:3], live[id(o)])) if id(o) in live else o for o in p.ops])

    def set(self, lr: float | Sequence[float]) -> None:
        each = [lr] * self._count if isinstance(lr, (int, float)) else list(lr)
        if len(each) != self._count:
            raise RunError(f"{len(each)} learning rates; the captured optimizer has {self._count} parameter groups")
        for k, x in enumerate(each):
            self._cells[k] = float(x)

    def get(self) -> list[float]:
        return [self._cells[k] for k in range(self._count)]


class _Live(dict[str, Any]):
    """Hyperparameters of which lr, which the dict lacks, is that of the group."""

    def __init__(self, h: Hyper, cells: memoryview[float], group: int):
        super().__init__({k: v for k, v in h.items() if k != "lr"})
        self._cells, self._group = cells, group

    def __missing__(self, key: str) -> float:
        if key != "lr":
            raise KeyError(key)
        return self._cells[self._group]
