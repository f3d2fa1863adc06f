"""Whether a loss is a mean over its samples, so that parts of a batch can stand for the whole."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.distributed as dist
from torch import nn

from .. import samples
from . import micro
from .draws import Draws
from .errors import StrategyError

TOLERANCE = 0.01  # of the loss; a sum is off by as much as itself, and bfloat16 by less


def check(model: nn.Module, loss: Callable[[Any], torch.Tensor], batch: Any, device: torch.device) -> None:
    """Raises StrategyError on all processes where the loss of the same samples twice is
    another than of them once, on any. loss is called without gradients, on no more samples
    than batch has unless that is one, with modules as in evaluation, and with the same random
    numbers (noise that it adds, times that it draws); where that fails nothing is said. What the step draws
    is as if nothing had been called."""
    n = samples.count(batch)
    off = torch.zeros((), device=device)
    modes = {m: m.training for m in model.modules()}
    buffers = [(b, b.clone()) for b in model.buffers()]  # some count calls in evaluation too
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng([device] if device.type == "cuda" else []):
            few, draws = micro.part(batch, 0, 2 if n % 2 == 0 else n), Draws()
            with draws:
                once = loss(few)
            with draws:
                twice = loss(micro.repeated(few, samples.count(few), 2 * samples.count(few)))
            if torch.isfinite(once) and torch.isfinite(twice):
                off = ((twice - once).abs() / once.abs().clamp(min=1e-6)).to(torch.float32)
    except Exception:  # a model may have another form in evaluation, a loss have gradients in it; the step says what is wrong
        pass
    finally:
        for m, mode in modes.items():
            m.training = mode
        with torch.no_grad():
            for b, was in buffers:
                b.copy_(was)
    if dist.get_world_size() > 1:
        dist.all_reduce(off, dist.ReduceOp.MAX)
    if float(off) > TOLERANCE:
        raise StrategyError(f"the loss of the same samples twice differs from that of them once by {100 * float(off):.0f}%: it is no mean over samples, so that micro-batches and replicas do not add up to the batch; divide it by their number")
