"""Which module an op comes from, backward ops included, while a model is traced."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.fx.traceback as traceback
from torch.utils._python_dispatch import TorchDispatchMode

from . import kinds
from .known import Known

KEY = "placer"  # in a node's meta["custom"]: (module path, phase, autograd node's number, draw)

FIRST_DRAW = 1 << 40  # beyond the seeds that people give


class Paths(TorchDispatchMode):
    """A dispatch mode above the tracer's. A forward op is in the module whose
    forward runs; a backward op in that of the forward op that made the autograd
    node which runs, found by the node's sequence number. Ops of a backward within the loss
    (a gradient penalty) are forward ops, in the modules of those whose gradients they compute.

    Nothing is drawn meanwhile, so the seed of torch's generator counts the random ops. A
    region under activation checkpointing that runs again has the generator put back: its
    ops have the numbers, draws, of those of its first run."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.phase = "forward"
        self.stack = [""]
        self.last: tuple[str, str] = ("", "")  # module and op dispatched last, for errors
        self._of: dict[int, str] = {}
        self.known = Known()
        self._hooks: list[Any] = []
        for path, module in model.named_modules():
            self._hooks.append(module.register_forward_pre_hook(self._enter(path)))
            self._hooks.append(module.register_forward_hook(self._leave, always_call=True))

    def _enter(self, path: str) -> Callable[..., None]:
        def hook(module: torch.nn.Module, args: Any) -> None:
            self.stack.append(path)

        return hook

    def _leave(self, module: torch.nn.Module, args: Any, out: Any) -> None:
        self.stack.pop()

    def remove(self) -> None:
        for h in self._hooks:
            h.remove()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        node = torch._C._current_autograd_node()
        number = node._sequence_nr() if node is not None else -1
        path = self._of.get(number, "") if node is not None else self.stack[-1]
        phase = self.phase if node is None else "backward"
        if self.phase == "forward":  # a backward within the loss too
            phase = "forward"
            number = torch.autograd._get_sequence_nr() - 1  # made just now, if the op has a gradient
            self._of.setdefault(number, path)
        draw = None
        if isinstance(func, torch._ops.OpOverload) and kinds.is_random(func):
            draw = torch.default_generator.initial_seed()
            torch.default_generator.manual_seed(draw + 1)
        traceback.current_meta["custom"] = {KEY: (path, phase, number, draw)}
        self.last = (path, str(func))
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        known = self.known.number(func, args, kwargs)
        if known is not None:
            return known
        result = func(*args, **kwargs)
        self.known.record(func, args, kwargs, result)
        return result
