"""torch's DistributedDataParallel of what may leave parameters out."""

from __future__ import annotations

from typing import Any, Collection

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Replica(DistributedDataParallel):
    """Its gradients are the replicas' mean, None of a parameter that no replica used, as in one process.
    They are views of the buckets that torch reduces, so that a process holds one copy of them.
    torch waits in each pass for the gradients of all parameters, or looks in each for those that it
    does not use, which it cannot where layers are computed again."""

    def __init__(self, module: nn.Module, ignored: Collection[nn.Parameter], group: dist.ProcessGroup):
        """ignored: parameters that are not reduced."""
        others = {id(p) for p in ignored}
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, [k for k, p in module.named_parameters() if id(p) in others])
        super().__init__(module, process_group=group, init_sync=False, gradient_as_bucket_view=True)
        self.broadcast_buffers = False  # an argument too, of which torch 2.15 warns
        self._trained = _trained(module)
        self._reduced = [p for p in module.parameters() if p.requires_grad and id(p) not in others]
        self._in_pass: set[int] = set()  # the parameters that have got a gradient, by id
        self._in_step: set[int] = set()
        self._asks: bool | None = None  # whether replicas tell each other what they used: those of the first step did not use all
        self._hooks = [p.register_post_accumulate_grad_hook(lambda p: self._in_pass.add(id(p))) for p in self._reduced]

    @property
    def stale(self) -> bool:
        """Whether other parameters are trained now: torch reduces those of the beginning alone."""
        return _trained(self.module) != self._trained

    def leave(self) -> None:
        """Another takes this one's place."""
        for h in self._hooks:
            h.remove()

    def sums(self) -> list[tuple[nn.Parameter, torch.Tensor]]:
        """Parameters and, between steps, their gradients in the buckets."""
        return [(p, p.grad) for p in self._reduced if p.grad is not None and p.grad.layout is torch.strided]

    def begin(self, last: bool) -> None:
        """Before a pass of a step; its last one reduces."""
        self.require_backward_grad_sync = last
        self._in_step |= self._in_pass
        self._in_pass.clear()

    def end(self) -> None:
        """Behind the last pass."""
        left, used = [p for p in self._reduced if id(p) not in self._in_pass], self._in_step | self._in_pass
        if left:
            _Unused.apply(*left).backward()
        self._in_step, self._in_pass = set(), set()
        if self._asks is False:
            return
        counts = torch.tensor([id(p) in used for p in self._reduced], dtype=torch.int32, device=self._reduced[0].device)
        dist.all_reduce(counts, group=self.process_group)
        if self._asks is None:
            self._asks = bool((counts < self.process_group.size()).any())
        for p, n in zip(self._reduced, counts.tolist()):
            if not n:
                p.grad = None


def _trained(module: nn.Module) -> list[bool]:
    return [p.requires_grad for p in module.parameters()]


class _Unused(torch.autograd.Function):
    """Parameters of which a pass made no gradients. Their gradients of this are none too, but torch
    sees that they are done with."""

    @staticmethod
    def forward(ctx: Any, *parameters: torch.Tensor) -> torch.Tensor:
        ctx.number = len(parameters)
        return torch.zeros((), device=parameters[0].device)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return (None,) * ctx.number
