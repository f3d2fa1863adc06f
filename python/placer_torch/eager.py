"""The step as the user has it, which torch itself runs: what a plan has to be faster than."""

from __future__ import annotations

import copy
import time
from typing import Any, NamedTuple

import torch

from . import batches, optim
from .capture import Loss, called
from .clipping import Clip
from .optim import Optimizers


class Eager(NamedTuple):
    """The least wall time of a step, as of the steps that it stands beside, and torch's threads, 0 for one GPU."""

    seconds: float
    threads: int

    def __str__(self) -> str:
        where = f"{self.threads} threads" if self.threads > 1 else "one thread" if self.threads else "one GPU"
        return f"torch's own step on {where}: {self.seconds * 1e3:.2f} ms"


def measure(model: torch.nn.Module, loss: Loss | None, batch: Any, optimizer: Optimizers | None, kind: str, *, clip: Clip = Clip(), accumulate: bool = False, steps: int = 20, limit_s: float = 4.0) -> Eager | None:
    """Runs copies of model and optimizer: one step to warm up, then `steps`, or as many as
    limit_s has room for, three at least. kind: "cpu", with the threads that torch has in this process, or
    "cuda", its current device. None where that fails: the copies do not fit beside the rest,
    or cannot be made."""
    try:
        model, optimizer = copy.deepcopy((model, optimizer))
        model = model.to(kind)
        batch = batches.rebuild(batch, iter([x.to(kind) if isinstance(x, torch.Tensor) else x for _, x in batches.leaves(batch)]))
        took: list[float] = []
        with torch.random.fork_rng(devices=[torch.cuda.current_device()] if kind == "cuda" else []):
            while len(took) < 4 or len(took) <= steps and sum(took) < limit_s:
                began = time.perf_counter()
                _step(model, loss, batch, optimizer, clip, accumulate)
                if kind == "cuda":
                    torch.cuda.synchronize()
                took.append(time.perf_counter() - began)
    except (RuntimeError, TypeError):  # torch's for want of memory or of a kernel, and deepcopy's
        return None
    return Eager(min(took[1:]), torch.get_num_threads() if kind == "cpu" else 0)


def _step(model: torch.nn.Module, loss: Loss | None, batch: Any, optimizer: Optimizers | None, clip: Clip, accumulate: bool) -> None:
    if loss is None:
        with torch.no_grad():
            called(model, batch)
        return
    for p in model.parameters():
        p.grad = None
    for b in batch if accumulate else [batch]:
        value = loss(model, b)
        (value / len(batch) if accumulate else value).backward()
    clip.eager(model.parameters())
    for o in optim.each(optimizer) if optimizer is not None else ():
        o.step()
