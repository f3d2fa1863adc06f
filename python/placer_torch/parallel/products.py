"""Modules that multiply by a weight: nn.Linear, nn.Embedding, the queries, keys and values of
nn.MultiheadAttention, and layers whose weight has a row for each input, as the Conv1D of
transformers' GPT-2 (`transposed` in a file)."""

from __future__ import annotations

import dataclasses

import torch
from torch import nn

from .strategy import Strategy


class Transposed(nn.Module):
    """x [..., inputs] @ weight [inputs, columns] + bias [columns]."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        super().__init__()
        self.weight, self.bias = weight, bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight if self.bias is None else torch.addmm(self.bias, x, self.weight)


def with_tied_tables(model: nn.Module, s: Strategy) -> Strategy:
    """s with the tables that have the weight of one whose vocabulary is cut: T5's encoder and
    decoder look up in one table, which a third module holds."""
    there = dict(model.named_modules())
    cut = {id(there[path].weight) for path in s.vocabulary_rows if isinstance(there.get(path), nn.Embedding)}
    more = [path for path, m in there.items() if isinstance(m, nn.Embedding) and id(m.weight) in cut and path not in s.vocabulary_rows]
    return dataclasses.replace(s, vocabulary_rows=(*s.vocabulary_rows, *more))


def transposed(m: nn.Module) -> bool:
    """Whether m can be a Transposed by another name: it has such parameters and nothing else."""
    weight, bias = m._parameters.get("weight"), m._parameters.get("bias")
    there = {k for k, p in m._parameters.items() if p is not None}
    if isinstance(m, (nn.Linear, nn.Embedding)) or weight is None or not there <= {"weight", "bias"} or any(True for _ in m.children()):
        return False
    return weight.dim() == 2 and (bias is None or bias.shape == weight.shape[1:])


def dimension(m: nn.Module, name: str) -> int:
    """Of m's parameter of this name, the dimension that is the product's columns."""
    return 0 if name == "bias" or isinstance(m, (nn.Linear, nn.MultiheadAttention)) else 1


def size(m: nn.Module, columns: bool) -> tuple[str, int]:
    """The columns of m's product or its inputs: their name and number."""
    if isinstance(m, nn.MultiheadAttention):
        return "3 * embed_dim", 3 * m.embed_dim
    if isinstance(m, nn.Linear):
        name = "out_features" if columns else "in_features"
    elif isinstance(m, nn.Embedding):
        name = "embedding_dim" if columns else "num_embeddings"
    else:
        name = f"weight.shape[{1 if columns else 0}]"
    weight = m.get_parameter("weight")
    of_columns = dimension(m, "weight")
    return name, weight.shape[of_columns if columns else 1 - of_columns]
