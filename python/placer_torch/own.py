"""An update as torch.optim's own class makes it: its single-tensor form, of one parameter alone."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch

from .errors import FormatError

# Classes that update each parameter by itself, and keep nothing but tensors of it.
NAMES = frozenset("Adadelta Adafactor Adagrad Adamax ASGD Muon NAdam RAdam RMSprop Rprop".split())

# What says how a step is computed, not what; captured steps have the defaults.
_HOW = frozenset(("params", "foreach", "fused", "capturable", "differentiable"))
_CHANGING = ("lr", "momentum", "betas", "weight_decay")


@functools.cache
def keys(name: str) -> tuple[str, ...]:
    """The hyperparameters of the class of this name, without those that say how to compute."""
    return tuple(k for k in inspect.signature(_class(name)).parameters if k not in _HOW)


def _class(name: str) -> Any:
    found = getattr(torch.optim, name, None)
    if found is None:
        raise FormatError(f"this torch ({torch.__version__}) has no optimizer {name}")
    return found


def of(name: str, p: torch.Tensor, h: Any) -> torch.optim.Optimizer:
    """An optimizer of this class that holds p alone and has made no step."""
    c = _class(name)
    how = {"foreach": False} if "foreach" in inspect.signature(c).parameters else {}
    made: torch.optim.Optimizer = c([p], **{k: h[k] for k in keys(name)}, **how)
    return made


def begun(o: torch.optim.Optimizer, p: torch.Tensor, g: torch.Tensor) -> dict[str, torch.Tensor]:
    """The state of p, which o holds, at its first step, "step" included; g: its gradient, of
    which the shape counts. The dict is the optimizer's own."""
    begin: Any = getattr(o, "_init_group")
    p.grad = g
    begin(o.param_groups[0], *([] for _ in range(len(inspect.signature(begin).parameters) - 1)))
    p.grad = None
    state: dict[str, torch.Tensor] = o.state[p]
    return state


def slots(name: str, p: torch.Tensor, h: Any) -> dict[str, torch.Tensor]:
    """The state that the class keeps of p, whose shape, strides and type count: tensors
    without values, by name, the step's number left out."""
    t = torch.empty_strided(p.shape, p.stride(), dtype=p.dtype, device="meta")
    return {k: v for k, v in begun(of(name, t, h), t, torch.empty_like(t)).items() if k != "step"}


class Own:
    """The rule of one op. Slots begin, at step 1, with what the class begins with, by the
    hyperparameters of then."""

    def __init__(self, name: str):
        self._name, self._step = name, inspect.unwrap(_class(name).step)  # without hooks, profiler and grad mode
        self._changing = [k for k in _CHANGING if k in keys(name)]
        self._of: torch.Tensor | None = None
        self._optimizer: torch.optim.Optimizer
        self._state: dict[str, torch.Tensor] = {}

    def __call__(self, p: torch.Tensor, g: torch.Tensor, slots: list[torch.Tensor], t: int, h: Any) -> None:
        if t == 1 or self._of is not p:
            self._begin(p, g, slots, t, h)
        group = self._optimizer.param_groups[0]
        for k in self._changing:
            group[k] = h[k]
        if "step" in self._state:
            self._state["step"].fill_(t - 1)
        p.grad = g
        self._step(self._optimizer)
        p.grad = None

    def _begin(self, p: torch.Tensor, g: torch.Tensor, slots: list[torch.Tensor], t: int, h: Any) -> None:
        self._of, self._optimizer = p, of(self._name, p, h)
        self._state = begun(self._optimizer, p, g)
        for k, slot in zip([k for k in self._state if k != "step"], slots, strict=True):
            if t == 1:
                slot.copy_(self._state[k])
            self._state[k] = slot
