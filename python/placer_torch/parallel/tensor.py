"""Products cut among processes: torch's tensor parallel styles, by module paths.

All parameters become DTensors of the tensor mesh, and activations stay DTensors from module to
module: the model's own code runs on them and sees whole shapes, so that head counts and views
are as they were. Tensors of the batch and of the model's code count as the same on all parts."""

from __future__ import annotations

import contextlib
from typing import Iterator

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import implicit_replication
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, SequenceParallel, loss_parallel, parallelize_module

from .strategy import Strategy

TOKENS = 1  # the dimension of an activation [samples, tokens, width] that sequence parallelism divides


def cut(module: nn.Module, s: Strategy, mesh: DeviceMesh) -> None:
    there = dict(module.named_modules())
    tied = _tied(module)
    between = Shard(TOKENS) if s.sequence else Replicate()
    styles: dict[str, ParallelStyle] = {}
    for path in s.columns:
        styles[path] = ColwiseParallel(input_layouts=between, use_local_output=False)
    for path in s.rows:
        styles[path] = RowwiseParallel(output_layouts=between, use_local_output=False)
    for path in s.vocabulary_columns:
        styles[path] = ColwiseParallel(input_layouts=between, output_layouts=Shard(-1), use_local_output=False)
    for path in s.vocabulary_rows:
        styles[path] = RowwiseParallel(input_layouts=Replicate(), output_layouts=between, use_local_output=False)
    if s.sequence:
        for path in s.by_rows:
            if path not in styles and path in there and not any(True for _ in there[path].children()):
                styles[path] = SequenceParallel(sequence_dim=TOKENS, use_local_output=False)
    for path, style in styles.items():
        if path in there:
            parallelize_module(there[path], mesh, style, src_data_rank=None)
    _replicate(module, mesh)
    for (owner, name), others in tied.items():
        for other, k in others:
            other.register_parameter(k, owner.get_parameter(name))


def _tied(module: nn.Module) -> dict[tuple[nn.Module, str], list[tuple[nn.Module, str]]]:
    """Parameters that are further modules' too, by the first of them."""
    first: dict[int, tuple[nn.Module, str]] = {}
    tied: dict[tuple[nn.Module, str], list[tuple[nn.Module, str]]] = {}
    for m in module.modules():
        for k, p in m._parameters.items():
            if p is not None and first.setdefault(id(p), (m, k)) != (m, k):
                tied.setdefault(first[id(p)], []).append((m, k))
    return tied


def _replicate(module: nn.Module, mesh: DeviceMesh) -> None:
    for m in module.modules():
        for k, p in m._parameters.items():
            if p is not None and not isinstance(p, DTensor):
                m.register_parameter(k, nn.Parameter(distribute_tensor(p.data, mesh, [Replicate()], src_data_rank=None), requires_grad=p.requires_grad))


@contextlib.contextmanager
def passes(s: Strategy) -> Iterator[None]:
    """Around forward and backward passes."""
    with contextlib.ExitStack() as stack:
        if s.tensor > 1:
            stack.enter_context(implicit_replication())
            if s.vocabulary:
                stack.enter_context(loss_parallel())
        yield


def whole(value: torch.Tensor) -> torch.Tensor:
    return value.full_tensor() if isinstance(value, DTensor) else value
