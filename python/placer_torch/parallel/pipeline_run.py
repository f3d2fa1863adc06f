"""The stages of a pipeline that are this process's, and their steps by torch's schedules."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any, Callable

import torch
import torch.distributed as dist
from torch import fx, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

from .. import batches
from ..errors import RunError
from ..optim import Optimizers, groups
from . import optimizers, passes, share
from .apply import apply
from .clipping import Clipping
from .mesh import Mesh
from .parts import Order
from .pipeline_cut import Cut
from .pipeline_places import Places
from .pipeline_stage import Stage
from .pipeline_state import States
from .pipeline_tied import Tied
from .pipeline_trace import trace
from .strategy import Strategy
from .training import mean

# A stage's results are read by torch's schedules alone, which change nothing in place.
warnings.filterwarnings("ignore", message=r"FSDP2-wrapped module \(\w+Stage\) returned a view", category=UserWarning)

Loss = Callable[[Any, Any], torch.Tensor]

_PRODUCTS = ("columns", "rows", "vocabulary_columns", "vocabulary_rows", "transposed")
_MODULES = (*_PRODUCTS, "experts")  # of the model that stages have as modules


class Run:
    """Stages of a model that was cut for a micro-batch like `example`."""

    def __init__(self, model: nn.Module, loss: Loss, optimizer: Optimizers, s: Strategy, mesh: Mesh, clipping: Clipping, example: Any):
        self.model, self.optimizer, self.s, self.mesh, self.clipping = model, optimizer, s, mesh, clipping
        self.fixed, self.shapes = _fixed(example), _shapes(example)
        traced = trace(model, loss, example, mesh.device, s.experts)
        cut = self.cut = Cut(traced, model, s.stages)
        self.tied = Tied(cut, mesh)
        self.stages = {k: Stage(cut, k, self.tied.state(k), s.layers, _products(s), mesh.tensor if s.tensor > 1 else None) for k in range(mesh.stage, cut.count, s.pipeline)}
        self.place = Places(self.stages, traced.names)
        for x in self.stages.values():
            for t in (*x.parameters(), *(b for b in x.buffers() if id(b) in traced.names)):
                t.data = t.data.to(mesh.device)
        copies = self.tied.paths(self.stages)
        self.strategies = {k: self.of_stage(x) for k, x in self.stages.items()}
        self.runs = {k: self.applied(k) for k in self.stages}
        self.tied.follow(self.place, copies)
        clipping.hold(self.tied.once(self.runs.values()), self.tied.elsewhere())
        names = [[traced.names[id(p)] for p in g["params"]] for g in groups(optimizer)]
        holders = cut.holders()
        order = Order(s.parts, s.tensor, s.transposed)
        keys = self.place.leave(model, optimizer, traced, holders, names, order)
        self.states = States(model, optimizer, self.place, holders, keys, names, mesh, order)
        self.schedule = self.scheduled()
        self.trained = _trained(model)

    def of_stage(self, stage: Stage) -> Strategy:
        """The rest of the strategy, by the paths of a stage."""
        there: dict[str, Any] = {key: stage.paths(getattr(self.s, key)) for key in _MODULES}
        trains = any(p.requires_grad for p in stage.parameters())
        return dataclasses.replace(self.s, parts={path: sizes for m, sizes in self.s.parts.items() for path in stage.paths((m,))}, layers=tuple((path,) for path in stage.layers()), data=self.s.data if trains else 1, **there)

    def applied(self, k: int) -> nn.Module:
        """Stage k by the rest of the strategy, as a model without a pipeline would be."""
        s = self.strategies[k]
        apply(self.stages[k], s, self.mesh)
        made = share.share(self.stages[k], s, self.mesh) if s.data > 1 else self.stages[k]
        return _EachReduced(made, s.sharding == "zero-3") if isinstance(made, FSDPModule) and s.sharding in ("zero-2", "zero-3") else made

    def scheduled(self) -> Any:
        stages: list[Any] = []
        for k, x in self.stages.items():
            given = tuple(self.like(n) for n in x.given)
            sent = tuple(self.like(n) for n in x.sent)
            stages.append(PipelineStage(self.runs[k], k, self.cut.count, self.mesh.device, input_args=given, output_args=sent, group=self.mesh.stages.get_group()))
        m = self.s.micro_batches

        def loss(out: Any, target: torch.Tensor) -> torch.Tensor:
            return (out[0] if isinstance(out, tuple) else out).sum() / m  # the last stage's result is the loss itself

        if self.s.schedule == "interleaved":
            return ScheduleInterleaved1F1B(stages, m, loss_fn=loss, scale_grads=False)
        return (ScheduleGPipe if self.s.schedule == "gpipe" else Schedule1F1B)(stages[0], m, loss_fn=loss, scale_grads=False)

    def like(self, n: fx.Node) -> torch.Tensor:
        val = n.meta["val"]
        return torch.empty(val.shape or (1,), dtype=val.dtype, device="meta", requires_grad=n in self.cut.gradient)

    def step(self, parts: list[Any]) -> float:
        other = next((k for k, trained in _trained(self.model).items() if trained != self.trained[k]), None)
        if other is not None:
            raise RunError(f"parameter {other} is {'frozen' if self.trained[other] else 'trained'} now and was not in the first step, of which the stages were made: distribute a new model, and load the state of this training")
        for p in parts:
            self.check(p)
        fed = [[x for _, x in batches.leaves(p) if isinstance(x, torch.Tensor)] for p in parts]
        for x in self.stages.values():
            x.feed(fed)
        share.begin(self.optimizer, self.runs.values(), len(parts) > 1)
        self.tied.begin()
        losses: list[torch.Tensor] = []
        with passes.passes(self.s, self.model, self.mesh):
            self.schedule.step(target=torch.zeros(len(parts), device=self.mesh.device), losses=losses)
        for runs in self.runs.values():
            if isinstance(runs, _EachReduced):
                runs.give_up()
        optimizers.settle(optimizers.held(self.optimizer))
        for k, stage in self.stages.items():
            share.reduce(stage, self.strategies[k], self.mesh)
        self.tied.add()
        self.clipping.clip()
        optimizers.update(self.optimizer)
        self.tied.copy()
        total = torch.stack([x.detach() for x in losses]).double().sum() if losses else torch.zeros((), dtype=torch.float64, device=self.mesh.device)
        dist.all_reduce(total, group=self.mesh.stages.get_group())
        return mean(total, self.mesh)

    def check(self, batch: Any) -> None:
        """That a micro-batch is as the first one, of which the stages were made."""
        if _fixed(batch) != self.fixed:
            raise RunError("the batch has other numbers, strings or keys than that of the first step, of which the stages were made: put what changes into a tensor")
        if _shapes(batch) != self.shapes:
            raise RunError(f"micro-batches of {_shapes(batch)}, and the stages were made of {self.shapes}: batches of one shape alone")

    def load(self, state: dict[str, Any], optimizer: dict[str, Any] | None) -> None:
        self.states.load(state, optimizer)
        self.tied.copy()

    def sent(self) -> dict[str, int]:
        values = [n for k, x in self.stages.items() for n in (*(x.sent if k + 1 < self.cut.count else ()), *(n for n in x.given if n in self.cut.gradient))]
        m = self.s.micro_batches
        return {"calls": m * len(values), "bytes": m * sum(math.prod(n.meta["val"].shape) * n.meta["val"].dtype.itemsize for n in values)}


class _EachReduced(nn.Module):
    """A stage whose gradients are reduced, and whose parameters are given up (zero-3), behind
    each micro-batch. torch's PipelineStage does that behind the last one where it sees the
    FSDPModule itself, and until then holds both whole."""

    def __init__(self, module: FSDPModule, gives_up: bool):
        super().__init__()
        self.add_module("module", module)  # type: ignore[arg-type]  # which is a Module too
        module.set_reshard_after_backward(gives_up)

    def forward(self, *given: torch.Tensor) -> Any:
        return self.get_submodule("module")(*given)

    def give_up(self) -> None:
        for m in self.modules():
            if isinstance(m, FSDPModule):
                m.reshard()


def _products(s: Strategy) -> set[str]:
    return {path for key in _PRODUCTS for path in getattr(s, key)} if s.tensor > 1 else set()


def _trained(model: nn.Module) -> dict[str, bool]:
    return {k: p.requires_grad for k, p in model.named_parameters()}


def _fixed(batch: Any) -> list[tuple[str, Any]]:
    return [(path, None if isinstance(x, torch.Tensor) else x) for path, x in batches.leaves(batch)]


def _shapes(batch: Any) -> list[tuple[list[int], str]]:
    return [(list(x.shape), str(x.dtype).removeprefix("torch.")) for _, x in batches.leaves(batch) if isinstance(x, torch.Tensor)]
