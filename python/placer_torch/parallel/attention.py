"""nn.MultiheadAttention cut by heads.

torch computes it in one function, whose views have heads and samples as one dimension, of which
no process has a part. Here they are two; results are the same, dropout's random numbers apart."""

from __future__ import annotations

import functools
import math
from typing import Any, Sequence, cast

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from .layouts import Inputs
from .local import of_local, to_local
from .parts import Parted

PACKED = ("in_proj_weight", "in_proj_bias")  # queries, keys and values, [3E, E] and [3E]


def sizes(m: nn.MultiheadAttention) -> tuple[int, int, int]:
    return (m.embed_dim,) * 3


def refused(m: nn.MultiheadAttention, parts: int) -> str:
    """Why m cannot be cut into so many parts; "" where it can."""
    if type(m).forward is not nn.MultiheadAttention.forward:
        return f"is a {type(m).__name__} with a forward of its own"
    if m.num_heads % parts:
        return f"has num_heads {m.num_heads}, which {parts} parts cannot share out"
    if not m._qkv_same_embed_dim:
        return f"is an nn.MultiheadAttention with kdim or vdim, which is not cut into {parts}"
    if m.bias_k is not None or m.add_zero_attn:
        return f"is an nn.MultiheadAttention with {'add_zero_attn' if m.bias_k is None else 'add_bias_kv'}, which is not cut into {parts}"
    return ""


def cut(m: nn.MultiheadAttention, mesh: DeviceMesh, inputs: Inputs) -> None:
    """Cuts the weights that make queries, keys and values, whose rows are in the order of ranks.
    m.out_proj is a product by rows like any other."""
    for name in PACKED:
        p = getattr(m, name)
        if p is not None:
            m.register_parameter(name, nn.Parameter(distribute_tensor(p.data, mesh, [Shard(0)], src_data_rank=None), requires_grad=p.requires_grad))
    m.forward = functools.partial(_forward, m, inputs)  # type: ignore[method-assign]


def _forward(m: nn.MultiheadAttention, inputs: Inputs, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None, average_attn_weights: bool = True, is_causal: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
    """As nn.MultiheadAttention.forward: query [samples, T, E], key and value [samples, S, E], or
    time first, or of one sample."""
    if is_causal and attn_mask is None:
        raise RuntimeError("nn.MultiheadAttention: is_causal wants attn_mask")
    one = query.dim() == 2
    samples = 0 if m.batch_first or one else 1
    given = [inputs.whole(x, m) for x in (query, key, value)]
    q, k, v = (_heads(m, x.unsqueeze(0) if one else x.transpose(0, samples)) for x in _projected(m, given))
    alone = is_causal and key_padding_mask is None and not need_weights
    mask = None if alone else _mask(q, k, attn_mask, key_padding_mask)
    dropout = m.dropout if m.training else 0.0
    weights = None
    if need_weights:
        scores = q @ k.transpose(-2, -1) / math.sqrt(m.head_dim)
        weights = F.dropout((scores if mask is None else scores + mask).softmax(-1), dropout)
        y = weights @ v
    else:
        y = F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal=alone)
    out = m.out_proj(y.transpose(1, 2).flatten(2).transpose(0, samples))
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    if one:
        return out.squeeze(0), None if weights is None else weights.squeeze(0)
    return out, weights


def _projected(m: nn.MultiheadAttention, given: Sequence[DTensor]) -> Sequence[torch.Tensor]:
    """Queries, keys and values, [..., E]: of one input by one product."""
    if given[0] is given[1] is given[2]:
        return cast("Sequence[torch.Tensor]", Parted(F.linear(given[0], m.in_proj_weight, m.in_proj_bias), sizes(m)).split(m.embed_dim, -1))
    weights = _thirds(cast(DTensor, m.in_proj_weight))
    biases = [None] * 3 if m.in_proj_bias is None else _thirds(cast(DTensor, m.in_proj_bias))
    return [F.linear(x, w, b) for x, w, b in zip(given, weights, biases)]


def _thirds(p: DTensor) -> list[DTensor]:
    """A process's rows of each of three parts."""
    return [of_local(x, p.device_mesh, [Shard(0)]) for x in to_local(p, p.placements).chunk(3)]


def _heads(m: nn.MultiheadAttention, x: torch.Tensor) -> torch.Tensor:
    """[samples, time, E] as [samples, heads, time, head_dim]."""
    return x.reshape(*x.shape[:2], m.num_heads, m.head_dim).transpose(1, 2)


def _mask(q: torch.Tensor, k: torch.Tensor, attn_mask: Any, key_padding_mask: Any) -> torch.Tensor | None:
    """What is added to scores [samples, heads, T, S], or broadcasts to them."""
    made = None
    if attn_mask is not None:
        made = _added(attn_mask, q.dtype)
        if made.dim() == 3 and len(made) > 1:
            made = made.view(*q.shape[:3], k.shape[2])
    if key_padding_mask is not None:
        padding = _added(key_padding_mask, q.dtype).view(-1, 1, 1, k.shape[2])
        made = padding if made is None else made + padding
    return made


def _added(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A mask that is added to scores: of a boolean one, -inf where it is true."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf) if mask.dtype == torch.bool else mask
