"""Layouts at the ends of cut products, for gradients as for activations.

A product cut by columns leaves each part a summand of its input's gradient. DTensor would add
them up in each op that reads the gradient; here they are added up once, where the input came in."""

from __future__ import annotations

import contextlib
import functools
import weakref
from typing import Any, Iterator, cast

import torch
import torch.utils._pytree as pytree
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate

from .local import Layout, of_local, to_local
from .parts import Parted


def replicated(x: torch.Tensor, mesh: DeviceMesh) -> DTensor:
    """x, which every part has whole. torch's convolutions want their input so, or have no gradients."""
    return x if isinstance(x, DTensor) else of_local(x, mesh, [Replicate()])


def run_whole(module: nn.Module, mesh: DeviceMesh) -> None:
    """Every part runs module on the whole of its inputs and with the whole of its parameters."""
    module.forward = functools.partial(_run_whole, module, mesh)


def _run_whole(module: nn.Module, mesh: DeviceMesh, *args: Any, **kwargs: Any) -> Any:
    args, kwargs = pytree.tree_map_only(torch.Tensor, local, (args, kwargs))
    with _local_parameters(module):
        made = type(module).forward(module, *args, **kwargs)
    return pytree.tree_map_only(torch.Tensor, lambda x: replicated(x, mesh), made)


def local(x: torch.Tensor) -> torch.Tensor:
    """The whole of x on this part, with the whole gradient."""
    if isinstance(x, Parted):
        x = x.whole()
    return to_local(x, [Replicate()]) if isinstance(x, DTensor) else x


@contextlib.contextmanager
def _local_parameters(module: nn.Module) -> Iterator[None]:
    there = dict(module._parameters)
    own: dict[str, Any] = {k: p if p is None else local(p) for k, p in there.items()}
    module._parameters.update(own)
    _list(module)
    try:
        yield
    finally:
        module._parameters.update(there)
        _list(module)


def _list(module: nn.Module) -> None:
    """Has a recurrent layer's own list hold its parameters."""
    if isinstance(module, nn.RNNBase):
        module._flat_weights = [module._parameters[k] for k in module._flat_weights_names]


def settled(x: DTensor, layout: Layout) -> DTensor:
    """x in a layout that its gradient has as well."""
    return of_local(to_local(x, layout), x.device_mesh, layout, x.shape)


def settle_output(module: nn.Module, layout: Layout) -> None:
    """The output of module has a layout that its gradient has as well."""
    module.register_forward_hook(lambda m, inputs, output: settled(output, layout) if isinstance(output, DTensor) else output)


def _multiplied_as(x: torch.Tensor, module: nn.Module) -> torch.dtype:
    """The type in which module multiplies x: under autocast torch's own layers cast it."""
    own = type(module).forward in (nn.Linear.forward, nn.MultiheadAttention.forward)
    if own and torch.is_autocast_enabled(x.device.type) and x.is_floating_point() and x.dtype != torch.float64:
        return torch.get_autocast_dtype(x.device.type)
    return x.dtype


class Inputs:
    """Whole inputs of products cut by columns. Products of one input (queries, keys and values)
    have it cast, gathered, and their summands of its gradient added up, once."""

    def __init__(self, mesh: DeviceMesh, between: Layout):
        """between: the layout of activations outside of cut products."""
        self._mesh, self._between = mesh, between
        self._last: tuple[weakref.ref[torch.Tensor], torch.dtype, DTensor] | None = None

    def attach(self, module: nn.Module) -> None:
        """The first input of module is made whole before anything else."""
        module.register_forward_pre_hook(lambda m, inputs: (self.whole(inputs[0], m), *inputs[1:]), prepend=True)

    def border(self, module: nn.Module) -> None:
        """What was made whole before module runs is not used within it: module is computed
        again, from the same inputs, and has to do then what it did first."""
        module.register_forward_pre_hook(lambda m, inputs: self.forget())

    def forget(self, *_: Any) -> None:
        self._last = None

    def whole(self, x: torch.Tensor, module: nn.Module) -> DTensor:
        """x as module, whose input it is, multiplies it."""
        dtype = _multiplied_as(x, module)
        if self._last is not None and self._last[0]() is x and self._last[1] == dtype:
            return self._last[2]
        there = cast("DTensor", replicated(x, self._mesh).to(dtype))
        made = there.redistribute(placements=[Replicate()]) if list(there.placements) == list(self._between) != [Replicate()] else settled(there, [Replicate()])
        self._last = weakref.ref(x), dtype, made
        return made
