"""Which module an op comes from, backward ops included, while a model is traced."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.fx.traceback as traceback
from torch.utils._python_dispatch import TorchDispatchMode

from . import kinds
from .errors import CaptureError
from .known import Known
from .where import here

KEY = "placer"  # in a node's meta["custom"]: (module path, phase, autograd node's number, draw)

_next_number: Callable[[], int] = getattr(torch.autograd, "_get_sequence_nr")

FIRST_DRAW = 1 << 40  # beyond the seeds that people give


class Paths(TorchDispatchMode):
    """A dispatch mode above the tracer's. A forward op is in the module whose
    forward runs; a backward op in that of the forward op that made the autograd
    node which runs, found by the node's sequence number. Ops of a backward within the loss
    (a gradient penalty) are forward ops, in the modules of those whose gradients they compute.

    Nothing is drawn meanwhile, so the seed of torch's generator counts the random ops. A
    region under activation checkpointing that runs again has the generator put back: its
    ops have the numbers, draws, of those of its first run. Any other seed is the code's."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.phase = "forward"
        self.stack = [""]
        self.last: tuple[str, str] = ("", "")  # module and op dispatched last, for errors
        self._of: dict[int, str] = {}
        self._draws = {FIRST_DRAW}  # seeds that the generator may have
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
            number = _next_number() - 1  # made just now, if the op has a gradient
            self._of.setdefault(number, path)
        kwargs = kwargs or {}
        draw = None
        if isinstance(func, torch._ops.OpOverload) and kinds.is_random(func):
            draw = self._draw(path, func, (*args, *kwargs.values()))
        traceback.current_meta["custom"] = {KEY: (path, phase, number, draw)}
        self.last = (path, str(func))
        if not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        known = self.known.number(func, args, kwargs)
        if known is not None:
            return known
        result = func(*args, **kwargs)
        self.known.record(func, args, kwargs, result)
        return result

    def _draw(self, path: str, func: Any, args: Any) -> int:
        """The number of a random op. Raises CaptureError where the code says what it draws."""
        at = f"op {func} in {f'module {path}' if path else 'the model'} ({here()})"
        if any(isinstance(x, torch.Generator) for x in args):
            raise CaptureError(f"{at} draws from a torch.Generator, which a captured step does not have: draw without one, or give what it draws in the batch")
        draw = torch.default_generator.initial_seed()
        if draw not in self._draws:
            raise CaptureError(f"{at} draws behind a seed that the code gives (manual_seed), the same numbers in each step, which a captured step would not: keep them in a buffer, register_buffer, or leave the seed out")
        self._draws.add(draw + 1)
        torch.default_generator.manual_seed(draw + 1)
        return draw

    def seed(self) -> int:
        """In the place of torch.seed: a seed of its own for the numbers that follow."""
        fresh = max(self._draws) + FIRST_DRAW
        self._draws.add(fresh)
        torch.default_generator.manual_seed(fresh)
        return fresh
