"""Attention among tokens that replicas share out: keys and values are gathered, queries are a
replica's own (Llama 3: arXiv:2407.21783, section 3.3.2).

In causal attention late tokens have more to read than early ones. Replicas have neighbouring tokens;
each gives half its queries to the one at the other end, so that all do as much."""

from __future__ import annotations

import contextlib
from typing import Any, Callable

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.autograd.function import once_differentiable
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement
from torch.nn.attention.bias import causal_lower_right

from .experts import Exchange

TOKENS = -2  # of queries, keys and values [..., heads, tokens, width]

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Any, bool], torch.Tensor]


def attention(mesh: DeviceMesh, again: bool, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> torch.Tensor:
    """F.scaled_dot_product_attention of DTensors. again: keys and values are gathered again for gradients."""

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any, causal: bool) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, mask, dropout_p, causal, scale=scale, enable_gqa=enable_gqa)

    ranks, queries, keys = mesh.size(), query.shape[TOKENS], key.shape[TOKENS]
    if queries % ranks or keys % ranks:
        q, k, v, mask = (_on(x, Replicate()) for x in (query, key, value, attn_mask))
        made = attend(q, k, v, mask, is_causal)
        return DTensor.from_local(made, mesh, [Replicate()], run_check=False)
    q, k, v = (_on(x, Shard(x.dim() + TOKENS)) for x in (query, key, value))
    gathered = _Gathered(k, v, mesh.get_group(), again)
    mask = _on(attn_mask, Replicate())
    if is_causal and queries != keys:
        mask, is_causal = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(), False
    with gathered.kept():
        made = _causal(q, gathered, attend, mesh) if is_causal else attend(q, gathered.key, gathered.value, _rows(mask, queries, mesh), False)
    return DTensor.from_local(made, mesh, [Shard(made.dim() + TOKENS)], run_check=False)


def _on(x: Any, how: Placement) -> Any:
    """A replica's part of a DTensor; what is none as it is."""
    if not isinstance(x, DTensor):
        return x
    return x.redistribute(placements=[how]).to_local(grad_placements=[how])


def _rows(mask: Any, queries: int, mesh: DeviceMesh) -> Any:
    """Those of a mask [..., queries or 1, keys] that are of this replica's queries."""
    if mask is None or mask.dim() < 2 or mask.shape[TOKENS] != queries:
        return mask
    return mask.chunk(mesh.size(), TOKENS)[mesh.get_local_rank()]


def _causal(q: torch.Tensor, gathered: _Gathered, attend: Attend, mesh: DeviceMesh) -> torch.Tensor:
    """Of 2R pieces of the queries this replica r has 2r and 2r + 1. It gives the second to replica
    R - 1 - r and has 2R - 1 - 2r of it: 2R + 1 pieces of keys in all, as every replica has."""

    def piece(q: torch.Tensor, end: int) -> torch.Tensor:
        """Of queries that end at a token."""
        k, v = (x.narrow(TOKENS, 0, end) for x in (gathered.key, gathered.value))
        n = q.shape[TOKENS]
        return attend(q, k, v, None, True) if n == end else attend(q, k, v, _late(n, end, q.device), False)

    ranks, r, n = mesh.size(), mesh.get_local_rank(), q.shape[TOKENS]
    if n % 2:
        return piece(q, (r + 1) * n)
    first, second = q.chunk(2, TOKENS)
    half, other = n // 2, ranks - 1 - r
    if other == r:
        return torch.cat([piece(first, (2 * r + 1) * half), piece(second, (2 * r + 2) * half)], TOKENS)
    swapped = piece(_swapped(second, other, mesh), (2 * ranks - 2 * r) * half)
    return torch.cat([piece(first, (2 * r + 1) * half), _swapped(swapped, other, mesh)], TOKENS)


def _late(queries: int, keys: int, device: torch.device) -> torch.Tensor:
    """The mask of the last of so many tokens, which torch's kernels for GPUs know by name."""
    if device.type == "cuda":
        return causal_lower_right(queries, keys)
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def _swapped(x: torch.Tensor, other: int, mesh: DeviceMesh) -> torch.Tensor:
    """x of another replica, which gets this one's. Gradients go back."""
    rows = x.movedim(TOKENS, 0)
    counts = [len(rows) if k == other else 0 for k in range(mesh.size())]
    return Exchange.apply(rows, counts, counts, mesh.get_group()).movedim(0, TOKENS)


class _Gathered:
    """Keys and values of all tokens. Where autograd keeps them it has a replica's own instead, and they
    are gathered once more for gradients, as others would fill the memory layer by layer."""

    def __init__(self, key: torch.Tensor, value: torch.Tensor, group: dist.ProcessGroup, again: bool):
        self._own, self._group, self._again = (key.detach(), value.detach()), group, again
        self.key, self.value = _Gather.apply(key, value, group)
        self._packed, self._used = 0, 0
        self._there: tuple[torch.Tensor, ...] | None = None

    def kept(self) -> contextlib.AbstractContextManager[Any]:
        """Around what reads them: afterwards they are there no more."""
        if not self._again:
            return contextlib.nullcontext()
        return self._kept()

    @contextlib.contextmanager
    def _kept(self) -> Any:
        at = {x.untyped_storage().data_ptr(): k for k, x in enumerate((self.key, self.value))}

        def pack(x: torch.Tensor) -> Any:
            k = at.get(x.untyped_storage().data_ptr()) if x.numel() else None
            if k is None:
                return x
            self._packed += 1
            return k, x.size(), x.stride(), x.storage_offset()

        def unpack(x: Any) -> torch.Tensor:
            return x if isinstance(x, torch.Tensor) else self._once_more(*x)

        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            yield
        at.clear()
        del self.key, self.value

    def _once_more(self, k: int, size: Any, stride: Any, offset: int) -> torch.Tensor:
        if self._there is None:
            self._there = _gather(*self._own, self._group)
        made = self._there[k].as_strided(size, stride, offset)
        self._used += 1
        if self._used == self._packed:
            self._there, self._used = None, 0
        return made


class _Gather(torch.autograd.Function):
    """Keys and values of all replicas; gradients are added up, each replica's own."""

    @staticmethod
    def forward(ctx: Any, key: torch.Tensor, value: torch.Tensor, group: dist.ProcessGroup) -> Any:
        ctx.group = group
        return _gather(key, value, group)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        ranks = dist.get_world_size(ctx.group)
        parts = [g.unflatten(TOKENS, (ranks, -1)).movedim(TOKENS - 1, 0) for g in grads]
        flat = torch.cat([x.flatten(1) for x in parts], 1)
        mine = flat.new_empty(flat.shape[1])
        dist.reduce_scatter_tensor(mine, flat.flatten(), group=ctx.group)
        own = mine.split([x[0].numel() for x in parts])
        return *(x.view(p.shape[1:]) for x, p in zip(own, parts)), None


def _gather(key: torch.Tensor, value: torch.Tensor, group: dist.ProcessGroup) -> tuple[torch.Tensor, ...]:
    """In one call."""
    flat = torch.cat([key.flatten(), value.flatten()])
    every = flat.new_empty(dist.get_world_size(group), len(flat))
    dist.all_gather_into_tensor(every.view(-1), flat, group=group)
    parts = every.split([key.numel(), value.numel()], 1)
    return tuple(p.unflatten(1, x.shape).movedim(0, TOKENS - 1).flatten(TOKENS - 1, TOKENS) for p, x in zip(parts, (key, value)))
