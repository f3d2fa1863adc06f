"""Whether a loss is a mean over its samples, so that parts of a batch can stand for the whole."""

from __future__ import annotations

import warnings
from typing import Any, Callable

import torch
import torch.distributed as dist
from torch import nn

from .. import samples
from . import micro
from .draws import Draws
from .errors import StrategyError, StrategyWarning

TOLERANCE = 0.01  # of the loss; a sum is off by as much as itself, and bfloat16 by less
ROUNDING = 1e-4  # the same without numbers of 16 bits; losses of new models are all alike, so that little more than rounding shows
EVEN = (8, 6, 4, 2)  # samples of which halves are compared with the whole


def check(model: nn.Module, loss: Callable[[Any], torch.Tensor], batch: Any, device: torch.device) -> None:
    """Raises StrategyError on all processes where the loss of the same samples twice is
    another than of them once, on any. Warns, on rank 0, where that of a few samples is not the mean of
    those of their halves. loss is called without gradients, on no more samples
    than batch has unless that is one, with modules as in evaluation, and with the same random
    numbers (noise that it adds, times that it draws); where that fails nothing is said. What the step draws
    is as if nothing had been called."""
    n = samples.count(batch)
    off = torch.zeros(2, device=device)  # of samples twice, and of their halves
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
            off[0] = _off(twice, once)
            some = next((k for k in EVEN if n % k == 0), 0)
            if some and not draws.any:  # halves would draw other numbers
                both = micro.part(batch, 0, n // some)
                halves = loss(micro.part(both, 0, 2)) + loss(micro.part(both, 1, 2))
                of_halves = _off(halves / 2, loss(both))
                off[1] = of_halves * (of_halves > max(TOLERANCE if draws.coarse else ROUNDING, 10 * float(off[0])))
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
    twice_off, halves_off = off.tolist()
    if twice_off > TOLERANCE:
        raise StrategyError(f"the loss of the same samples twice differs from that of them once by {100 * twice_off:.0f}%: it is no mean over samples, so that micro-batches and replicas do not add up to the batch; divide it by their number")
    if halves_off > 0 and dist.get_rank() == 0:
        warnings.warn(
            f"the loss of a few samples differs from the mean of those of their halves by {100 * halves_off:.2g}%, as of one that divides by a number of its own (tokens that are not padding, weights of classes) or has a term of the whole batch (the balance of a mixture): "
            "micro-batches and replicas weigh alike, so that losses and weights are not those of the whole batch. To have these, give each sample its weight in a tensor of the batch, and take the mean of the products",
            StrategyWarning,
            stacklevel=3,
        )


def _off(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The difference of a from b, relative to b; 0 where one is no finite number."""
    off = ((a - b).abs() / b.abs().clamp(min=1e-6)).to(torch.float32)
    return torch.where(torch.isfinite(off), off, 0.0)
