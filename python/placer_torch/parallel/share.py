"""Replicas of a module that share out optimizer state, gradients and parameters."""

from __future__ import annotations

import contextlib
import dataclasses
import traceback
from typing import Callable, Iterable, Iterator, cast

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor

from ..optim import Optimizers
from ..where import where
from . import experts, optimizers
from .errors import StrategyError
from .mesh import Mesh
from .names import plain
from .replica import Replica
from .strategy import Strategy

Loss = Callable[[], torch.Tensor]


class Passes(nn.Module):
    """Losses of a model as the forward of a module, with which torch's data parallelism begins and
    ends what it does: a loss may call parts of the model, and not its forward."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, loss: Loss) -> torch.Tensor:
        if isinstance(self.model, FSDPModule):
            self.model.unshard()  # what lies in no layer
        return loss()


def share_model(model: nn.Module, s: Strategy, mesh: Mesh) -> nn.Module:
    """Shares a whole model out. Returns what runs losses of it; model stays what the loss is given."""
    made = Passes(model)
    if s.data == 1:
        return made
    if s.sharding == "ddp" and s.tensor == 1:
        return _replica(made, model, s, mesh)
    share(model, s, mesh)
    share(made, dataclasses.replace(s, layers=()), mesh)  # of which no parameters are left
    with torch.no_grad():
        made(lambda: torch.zeros(()))  # torch takes what runs first for the outermost
    cast(FSDPModule, model).reshard()
    return made


def share(module: nn.Module, s: Strategy, mesh: Mesh) -> nn.Module:
    """ddp: whole replicas, gradients all-reduced. zero-1 and zero-2: parameters are gathered
    once a step and stay until its end; gradients are reduce-scattered, and each process
    updates its share. zero-3: parameters are gathered layer by layer for each pass. Single numbers
    stay whole. Experts are shared by those that have the same ones (reduce). Returns module, or
    what wraps it."""
    if s.sharding == "ddp":
        if s.tensor == 1:
            return _replica(module, module, s, mesh)
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


def _replica(module: nn.Module, model: nn.Module, s: Strategy, mesh: Mesh) -> Replica:
    """module, which is model or runs it, as one of the replicas that have all parameters but experts'."""
    return Replica(module, [p for _, p in experts.parameters(model, s.shared_experts)], mesh.data.get_group())


def of_trained(runs: nn.Module, model: nn.Module, s: Strategy, mesh: Mesh) -> nn.Module:
    """runs, or what takes its place where parameters were frozen or are trained from now on."""
    if not isinstance(runs, Replica) or not runs.stale:
        return runs
    runs.leave()
    return _replica(runs.module, model, s, mesh)


def _numbers(module: nn.Module) -> list[nn.Parameter]:
    """Parameters that have no dimension to be shared out by, as a learned temperature."""
    return [p for p in module.parameters() if not p.dim()]


def reduce(model: nn.Module, s: Strategy, mesh: Mesh) -> None:
    """Reduces, behind the last micro-batch, what torch's own parts do not: gradients of single numbers
    that replicas have whole, and under ddp those of experts that several have."""
    if s.data > 1 and s.sharding != "ddp":
        _mean(_numbers(model), mesh.data)
    elif s.sharding == "ddp" and 1 < s.expert_ranks < s.data:
        _mean([p for _, p in experts.parameters(model, s.shared_experts)], mesh.copies)


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
def passes(s: Strategy, model: nn.Module) -> Iterator[None]:
    """Around forward and backward passes. Raises StrategyError where code outside of modules reads
    parameters of which this process has a share."""
    try:
        yield
    except RuntimeError as e:
        if s.data == 1 or s.sharding == "ddp" or "mixed torch.Tensor and DTensor" not in str(e):
            raise
        at, layer = where(e), _layer(s, model, e)
        if layer:
            raise StrategyError(f"{s.strategy}: layer {layer} runs without being called{f' ({at})' if at else ''}: {s.sharding} gathers the parameters of a layer for a call of it, and not for its other methods or for parts of it; have them be its forward, or take ddp") from e
        raise StrategyError(f"{s.strategy}: {at or 'the loss'} reads parameters outside of the forward of their layer, where {s.sharding} has shares of them alone: a penalty of weights belongs into the optimizer (weight_decay) or into the layer's forward; or take ddp") from e


def _layer(s: Strategy, model: nn.Module, e: BaseException) -> str:
    """The layer whose code, or that of a module in it, ran where e was raised."""
    names = {id(m): plain(k) for k, m in model.named_modules()}
    ran = [names.get(id(frame.f_locals.get("self")), "") for frame, _ in traceback.walk_tb(e.__traceback__)]
    return next((path for layer in s.layers for path in map(plain, layer) if any(f"{k}.".startswith(f"{path}.") for k in ran)), "")


def begin(optimizer: Optimizers, modules: Iterable[nn.Module], several: bool) -> None:
    """Before the passes of a step: no parameter has a gradient. Those of several passes of replicas are
    zero instead, where they are in buckets, and are added up there: without one torch makes a new
    gradient in a pass that reduces nothing, and copies it in the last."""
    sums = [x for m in modules if several and isinstance(m, Replica) for x in m.sums()]
    optimizers.begin(optimizer)
    for p, grad in sums:
        p.grad = grad.zero_()


def before_loss(module: nn.Module, last: bool) -> None:
    """What is said before the loss of a micro-batch. Gradients that the loss itself takes, as a
    penalty of them does, are not reduced behind it, and parameters stay."""
    if isinstance(module, Replica):
        module.begin(last)
    elif isinstance(module, FSDPModule):
        module.set_requires_gradient_sync(False)
        module.set_is_last_backward(False)
        module.set_reshard_after_backward(False)


def before_backward(module: nn.Module, s: Strategy, last: bool) -> None:
    """What is said before the backward pass of a micro-batch: whether gradients are reduced behind
    it, and parameters given up. With zero-2 and zero-3 each micro-batch's gradients are
    reduced, so that no process ever holds the sum of whole ones."""
    if isinstance(module, FSDPModule):
        module.set_requires_gradient_sync(last or s.sharding in ("zero-2", "zero-3"))
        module.set_is_last_backward(last)
        module.set_reshard_after_backward(last or s.sharding == "zero-3")


def behind_passes(module: nn.Module) -> None:
    if isinstance(module, Replica):
        module.end()
