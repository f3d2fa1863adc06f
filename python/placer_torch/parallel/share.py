"""Replicas of a module that share out optimizer state, gradients and parameters."""

from __future__ import annotations

import contextlib
from typing import Any, Iterable, Iterator

import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from ..where import where
from . import experts
from .errors import StrategyError
from .mesh import Mesh
from .strategy import Strategy


class Replica(DistributedDataParallel):
    """torch's DistributedDataParallel, with the attributes of the model within, which a loss may read."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)


def share(module: nn.Module, s: Strategy, mesh: Mesh) -> nn.Module:
    """ddp: whole replicas, gradients all-reduced. zero-1 and zero-2: parameters are gathered
    once a step and stay until its end; gradients are reduce-scattered, and each process
    updates its share. zero-3: parameters are gathered layer by layer for each pass. Single numbers
    stay whole. Experts are shared by those that have the same ones (reduce)."""
    if s.sharding == "ddp":
        if s.tensor == 1:
            Replica._set_params_and_buffers_to_ignore_for_model(module, [k for k, _ in experts.parameters(module, s.shared_experts)])
            replica = Replica(module, device_mesh=None, process_group=mesh.data.get_group(), init_sync=False)
            replica.broadcast_buffers = False  # an argument too, of which torch 2.15 warns
            return replica
        from torch.distributed._composable.replicate_with_fsdp import replicate  # not in torch that cuts no products

        replicate(module, mesh=mesh.data)
        return module
    there = dict(module.named_modules())
    whole = set(_numbers(module))
    keep = s.sharding != "zero-3"
    if s.data > s.expert_ranks:
        for m in experts.modules(module, s.shared_experts):
            fully_shard(m, mesh=mesh.copies, reshard_after_forward=not keep)
    else:
        whole |= {p for _, p in experts.parameters(module, s.shared_experts)}
    for path in (p for layer in s.layers for p in layer):
        group = [m for m in _called(there[path]) if any(True for _ in m.parameters())] if path in there else []
        if group:
            fully_shard(group, mesh=mesh.data, reshard_after_forward=not keep, ignored_params=whole)
    # What lies in no layer stays from the forward to the backward pass.
    fully_shard(module, mesh=mesh.data, reshard_after_forward=False, ignored_params=whole)
    return module


def _numbers(module: nn.Module) -> list[nn.Parameter]:
    """Parameters that have no dimension to be shared out by, as a learned temperature."""
    return [p for p in module.parameters() if not p.dim()]


def reduce(module: nn.Module, s: Strategy, mesh: Mesh) -> None:
    """Reduces, behind the last micro-batch, what torch's own parts do not: gradients of single numbers
    that replicas have whole, and under ddp those of experts that several have."""
    if s.data > 1 and s.sharding != "ddp":
        _mean(_numbers(module), mesh.data)
    elif isinstance(module, DistributedDataParallel) and 1 < s.expert_ranks < s.data:
        module = module.module
        _mean([p for _, p in experts.parameters(module, s.shared_experts)], mesh.copies)


def _mean(parameters: Iterable[nn.Parameter], among: DeviceMesh) -> None:
    """Gives gradients the mean of all processes'."""
    for p in parameters:
        if p.grad is not None:
            grad = p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad
            dist.all_reduce(grad, group=among.get_group())
            grad /= among.size()


def _called(layer: nn.Module) -> list[nn.Module]:
    """The modules that run where layer does: layer itself, or the elements of a container, which is never called."""
    if not isinstance(layer, (nn.ModuleList, nn.ModuleDict)):
        return [layer]
    return [x for m in layer.children() for x in _called(m)]


@contextlib.contextmanager
def passes(s: Strategy) -> Iterator[None]:
    """Around forward and backward passes. Raises StrategyError where code outside of modules reads
    parameters of which this process has a share."""
    try:
        yield
    except RuntimeError as e:
        if s.data == 1 or s.sharding == "ddp" or "mixed torch.Tensor and DTensor" not in str(e):
            raise
        at = where(e)
        raise StrategyError(f"{s.strategy}: {at or 'the loss'} reads parameters outside of the forward of their layer, where {s.sharding} has shares of them alone: a penalty of weights belongs into the optimizer (weight_decay) or into the layer's forward; or take ddp") from e


def before_pass(module: nn.Module, s: Strategy, last: bool) -> None:
    """What is said before the passes of a micro-batch: whether gradients are reduced behind
    them, and parameters given up. With zero-2 and zero-3 each micro-batch's gradients are
    reduced, so that no process ever holds the sum of whole ones."""
    if isinstance(module, DistributedDataParallel):
        module.require_backward_grad_sync = last
    elif isinstance(module, FSDPModule):
        module.set_requires_gradient_sync(last or s.sharding in ("zero-2", "zero-3"))
        module.set_is_last_backward(last)
        if s.sharding in ("zero-1", "zero-2"):
            module.set_reshard_after_backward(last)
