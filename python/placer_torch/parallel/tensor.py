"""Products cut among processes: torch's tensor parallel styles, by module paths.

All parameters become DTensors of the tensor mesh, and activations stay DTensors from module to
module: the model's own code runs on them and sees whole shapes, so that head counts and views
are as they were. Tensors of the batch and of the model's code count as the same on all parts."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import implicit_replication, register_sharding
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, loss_parallel, parallelize_module
from torch.distributed.tensor.placement_types import Placement
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules import pooling
from torch.nn.modules.conv import _ConvNd

from . import attention, losses, parts, products
from .layouts import Inputs, replicated, run_whole, settle_output
from .strategy import Strategy

# Modules of whose ops DTensor has not all.
_WHOLE = (pooling._MaxPoolNd, pooling._AvgPoolNd, pooling._AdaptiveAvgPoolNd, pooling._AdaptiveMaxPoolNd, pooling._LPPoolNd, nn.Upsample, nn.Fold, nn.Unfold, nn.EmbeddingBag, nn.RNNBase, nn.RNNCellBase)

TOKENS = 1  # the dimension of an activation [samples, tokens, width] that `sp` divides, and `cp`


def cut(module: nn.Module, s: Strategy, mesh: DeviceMesh) -> None:
    """Cuts the products of module that s names, and has all its parameters on mesh."""
    there = dict(module.named_modules())
    tied = _tied(module)
    between = _between(s)
    inputs = Inputs(mesh, between)
    for path, style in _styles(s).items():
        if path in there:
            if path in s.parts:
                parts.arrange(there[path], s.parts[path], mesh.size())
            m = there[path]
            if isinstance(m, nn.MultiheadAttention):
                attention.cut(m, mesh, inputs)
            elif path in s.transposed:
                _cut_transposed(m, mesh, path in (*s.columns, *s.vocabulary_columns))
            else:
                parallelize_module(m, mesh, style, src_data_rank=None)
    for group in tied:
        owner, name = next(((m, k) for m, k in group if isinstance(m._parameters[k], DTensor)), group[0])
        for other, k in group:
            other.register_parameter(k, owner.get_parameter(name))
    _replicate(module, mesh)
    for path in (*s.columns, *s.vocabulary_columns):
        if path in there and not isinstance(there[path], nn.MultiheadAttention):
            inputs.attach(there[path])
    for path, sizes in s.parts.items():
        if path in there and not isinstance(there[path], nn.MultiheadAttention):
            parts.split(there[path], sizes)
    _register_shardings()
    for m in module.modules():
        if isinstance(m, _ConvNd):
            m.register_forward_pre_hook(lambda m, given: (replicated(given[0], mesh), *given[1:]))
        elif isinstance(m, _WHOLE):
            run_whole(m, mesh)
    for path in (*s.rows, *s.vocabulary_rows):
        if path in there:
            settle_output(there[path], between)
    for path in (p for layer in s.layers for p in layer):
        if path in there:
            inputs.border(there[path])
    module.register_forward_hook(inputs.forget)


def _between(s: Strategy) -> list[Placement]:
    """The layout of activations outside of cut products."""
    return [Shard(TOKENS) if s.sequence else Replicate()]


def _styles(s: Strategy) -> dict[str, ParallelStyle]:
    (between,) = _between(s)
    styles: dict[str, ParallelStyle] = {}
    for path in s.columns:
        styles[path] = ColwiseParallel(use_local_output=False)
    for path in s.rows:
        styles[path] = RowwiseParallel(output_layouts=between, use_local_output=False)
    for path in s.vocabulary_columns:
        styles[path] = ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)
    for path in s.vocabulary_rows:
        styles[path] = RowwiseParallel(input_layouts=Replicate(), output_layouts=between, use_local_output=False)
    return styles


def _cut_transposed(module: nn.Module, mesh: DeviceMesh, columns: bool) -> None:
    """Cuts what torch has no style for: its own code then runs on DTensors."""
    for name, p in list(module.named_parameters()):
        d = products.dimension(module, name)
        how = Shard(d) if columns else Replicate() if name == "bias" else Shard(1 - d)
        module.register_parameter(name, nn.Parameter(distribute_tensor(p.data, mesh, [how], src_data_rank=None), requires_grad=p.requires_grad))
    if not columns:
        module.register_forward_pre_hook(lambda m, given: (replicated(given[0], mesh).redistribute(placements=[Shard(-1)]), *given[1:]))


@functools.cache
def _register_shardings() -> None:
    """Of ops that DTensor has not: the weights of torch's weight norm, which all parts have whole."""

    def whole(results: int, operands: int) -> Callable[..., Any]:
        return lambda *_: [([Replicate()] * results, [Replicate()] * operands + [None])]

    register_sharding(torch.ops.aten._weight_norm_interface.default)(whole(2, 2))
    register_sharding(torch.ops.aten._weight_norm_interface_backward.default)(whole(2, 4))


def _tied(module: nn.Module) -> list[list[tuple[nn.Module, str]]]:
    """The modules, with names, of each parameter that several have."""
    holders: dict[int, list[tuple[nn.Module, str]]] = {}
    for m in module.modules():
        for k, p in m._parameters.items():
            if p is not None:
                holders.setdefault(id(p), []).append((m, k))
    return [x for x in holders.values() if len(x) > 1]


def _replicate(module: nn.Module, mesh: DeviceMesh) -> None:
    made: dict[int, tuple[nn.Parameter, nn.Parameter]] = {}
    for m in module.modules():
        for k, p in m._parameters.items():
            if p is not None and not isinstance(p, DTensor):
                if id(p) not in made:  # by the old one, which is kept so that no other gets its id
                    made[id(p)] = p, nn.Parameter(distribute_tensor(p.data, mesh, [Replicate()], src_data_rank=None), requires_grad=p.requires_grad)
                m.register_parameter(k, made[id(p)][1])


@contextlib.contextmanager
def passes(s: Strategy, device: torch.device) -> Iterator[None]:
    """Around forward and backward passes."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(implicit_replication())
        stack.enter_context(losses.Calls())
        if s.vocabulary_columns:
            stack.enter_context(loss_parallel())
        if device.type == "cpu":  # of whose attention in one kernel DTensor knows nothing
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        yield


def whole(value: torch.Tensor) -> torch.Tensor:
    """value on all parts."""
    return value.full_tensor() if isinstance(value, DTensor) else value
