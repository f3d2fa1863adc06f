"""Hyperparameters that can change between the steps of a loop."""

from __future__ import annotations

import dataclasses
import math
import mmap
from typing import Any, Sequence

from . import optim
from .errors import RunError
from .optim import Optimizers
from .rules import Hyper
from .program import Program


# What schedulers change, in the order of a group's cells. NaN: as captured, but of lr.
_CELLS = ("lr", "momentum", "beta1", "beta2", "weight_decay")
# What else a captured update has beside its own hyperparameters.
_BESIDE = ("betas", "group", "cycled", "decoupled")


class Rates:
    """Learning rate, momentum, betas and weight decay of each of an optimizer's parameter
    groups, in memory that the worker processes share, which read them in every update."""

    def __init__(self, p: Program):
        updates = [o for o in p.ops if o.role == "update"]
        # files that earlier versions wrote have no groups: those of one rate are one
        first = p.rates or list(dict.fromkeys(float(o.args[3]["lr"]) for o in updates))
        self._count = len(first)
        self._cells: memoryview[float] = memoryview(mmap.mmap(-1, 8 * len(_CELLS) * max(1, len(first)))).cast("d")
        for k in range(len(_CELLS) * self._count):
            self._cells[k] = math.nan
        group = {id(o): o.args[3].get("group", -1) if p.rates else first.index(o.args[3]["lr"]) for o in updates}
        self._captured: dict[int, Hyper] = {group[id(o)]: o.args[3] for o in updates}
        self.set(first)
        live = {id(o): _Live(o.args[3], self._cells, group[id(o)]) for o in updates}
        self.program = dataclasses.replace(p, ops=[dataclasses.replace(o, args=(*o.args[:3], live[id(o)])) if id(o) in live else o for o in p.ops])

    def set(self, lr: float | Sequence[float]) -> None:
        each = [lr] * self._count if isinstance(lr, (int, float)) else list(lr)
        if len(each) != self._count:
            raise RunError(f"{len(each)} learning rates; the captured optimizer has {self._count} parameter groups")
        for k, x in enumerate(each):
            self._cells[len(_CELLS) * k] = float(x)

    @property
    def cycled(self) -> bool:
        """Whether a scheduler of the captured optimizer changes momentum beside the rate."""
        return any(h.get("cycled") for h in self._captured.values())

    def get(self) -> list[float]:
        return [self._cells[len(_CELLS) * k] for k in range(self._count)]

    def follow(self, optimizer: Optimizers) -> None:
        """Takes what the optimizer's groups have now. Raises RunError where that needs
        another capture, and changes nothing then."""
        groups = optim.groups(optimizer)
        if len(groups) != self._count:
            raise RunError(f"the optimizer has {len(groups)} parameter groups, the captured one {self._count}")
        for k, g in enumerate(groups):
            h = self._captured.get(k, {})
            for key in h.keys() - {*_CELLS, *_BESIDE}:
                if h[key] != g.get(key):
                    raise RunError(f"{key} of parameter group {k} is {g.get(key)}, captured as {h[key]}: capture again")
            if "momentum" in h and g["momentum"] and not h["momentum"]:
                raise RunError(f"momentum of parameter group {k} is {g['momentum']}, captured without: capture again")
        for k, g in enumerate(groups):
            beta1, beta2 = g.get("betas", (math.nan, math.nan))
            for j, x in enumerate((g["lr"], g.get("momentum", math.nan), beta1, beta2, g.get("weight_decay", math.nan))):
                self._cells[len(_CELLS) * k + j] = float(x)

    @property
    def cells(self) -> list[list[float]]:
        """By group; NaN: as captured."""
        n = len(_CELLS)
        return [list(self._cells[n * k : n * (k + 1)]) for k in range(self._count)]

    @cells.setter
    def cells(self, to: Sequence[Sequence[float]]) -> None:
        if [len(x) for x in to] != [len(_CELLS)] * self._count:
            raise RunError(f"the checkpoint has {len(to)} parameter groups, the captured optimizer {self._count}")
        for k, x in enumerate(y for group in to for y in group):
            self._cells[k] = x


class _Live(dict[str, Any]):
    """Hyperparameters of which those that change, which the dict lacks, are the group's."""

    def __init__(self, h: Hyper, cells: memoryview[float], group: int):
        super().__init__({k: v for k, v in h.items() if k not in (*_CELLS, "betas")})
        self._captured = {**h, **dict(zip(("beta1", "beta2"), h.get("betas", ())))}
        self._cells, self._first = cells, len(_CELLS) * group

    def __missing__(self, key: str) -> Any:
        if key == "betas":
            return self["beta1"], self["beta2"]
        x = self._cells[self._first + _CELLS.index(key)] if key in _CELLS else math.nan
        return self._captured[key] if x != x else x
