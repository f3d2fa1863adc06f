"""Small mixtures whose experts are modules of their own, as replicas share them out."""

from __future__ import annotations

import models
import torch
import torch.nn as nn
import torch.nn.functional as F
from split_models import CLASSES, TIME, WIDTH, Encoder

HIDDEN, EXPERTS, LAYERS = 24, 4, 2


class Chosen(nn.Module):
    """Called as transformers' experts are, with the two of each row: products of groups of rows. With
    biases, as gpt-oss has them."""

    def __init__(self) -> None:
        super().__init__()
        self.num_experts = EXPERTS
        self.up, self.up_bias = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN) / 4), nn.Parameter(torch.randn(EXPERTS, HIDDEN))
        self.down, self.down_bias = nn.Parameter(torch.randn(EXPERTS, HIDDEN, WIDTH) / 4), nn.Parameter(torch.randn(EXPERTS, WIDTH))

    def forward(self, rows: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        k = experts.shape[-1]
        of, order = experts.flatten().sort()
        ends = torch.arange(self.num_experts).eq(of[:, None]).sum(0).cumsum(0, dtype=torch.int32)
        y = F.relu(torch._grouped_mm(rows[order // k], self.up, ends) + self.up_bias[of])
        y = torch._grouped_mm(y, self.down, ends) + self.down_bias[of]
        y = (y * weights.flatten()[order][:, None])[order.argsort()]
        return y.view(len(rows), k, -1).sum(1)


class Blocks(nn.Module):
    """Called with as many rows for each expert, [E, C, width]."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN) / 4), nn.Parameter(torch.randn(EXPERTS, HIDDEN, WIDTH) / 4)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.bmm(F.relu(torch.bmm(rows, self.up)), self.down)


class OfChosen(nn.Module):
    """A layer whose router sends each token to its two best experts."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.router, self.experts = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, EXPERTS, bias=False), Chosen()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.norm(x).flatten(0, 1)
        weights, experts = self.router(rows).softmax(-1).topk(2)
        return x + self.experts(rows, experts, weights).view_as(x)


class OfBlocks(nn.Module):
    """A layer whose experts take a quarter of each sample's tokens, those that score highest."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.router, self.experts = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, EXPERTS, bias=False), Blocks()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.norm(x)
        b, t, d = x.shape
        weights, at = self.router(rows).softmax(-1).topk(t // EXPERTS, 1)  # [b, rows, experts]
        at = at.transpose(1, 2).flatten(1)[..., None].expand(-1, -1, d)
        block = rows.gather(1, at).view(b, EXPERTS, -1, d).transpose(0, 1).flatten(1, 2)
        made = self.experts(block).view(EXPERTS, b, -1, d).transpose(0, 1).flatten(1, 2)
        return x.scatter_add(1, at, made * weights.transpose(1, 2).flatten(1)[..., None])


def chosen(samples: int = 8) -> models.Example:
    return _example(OfChosen, samples)


def blocks(samples: int = 8) -> models.Example:
    return _example(OfBlocks, samples)


def _example(layer: type[nn.Module], samples: int) -> models.Example:
    torch.manual_seed(0)
    m = Encoder(layer)
    if layer is OfBlocks:  # there are products of groups of rows in float32 alone
        m.double()
    ids = torch.randint(0, CLASSES, (samples, TIME))
    return m, models.cross_entropy, (ids, ids.roll(-1, 1)), torch.optim.AdamW(m.parameters(), lr=0.01)
