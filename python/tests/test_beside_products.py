"""Modules beside split products of whose ops DTensor knows nothing."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

import models
import split_models
import strategies
from strategies import SAMPLES, TIME, strategy

pytestmark = pytest.mark.forks

WIDTH = split_models.WIDTH


class Sounds(nn.Module):
    """As wav2vec 2.0 begins and Swin ends: a normed convolution over time, and the mean over it by a
    pool of one place; recurrent layers, and bags of embeddings, as recommenders have them."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = weight_norm(nn.Conv1d(WIDTH, WIDTH, 3, padding=1), name="weight", dim=2)
        self.layers = nn.ModuleList([split_models.Feed(nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)) for _ in strategies.LAYERS])
        self.pool, self.wider = nn.AdaptiveAvgPool1d(1), nn.Upsample(scale_factor=2)
        self.halves = nn.MaxPool1d(2, return_indices=True)
        self.lstm, self.cell, self.bag = nn.LSTM(WIDTH, WIDTH // 2, 2, batch_first=True, bidirectional=True), nn.GRUCell(WIDTH, WIDTH), nn.EmbeddingBag(5, WIDTH, mode="sum")
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.positions(x.transpose(1, 2)).transpose(1, 2)
        for layer in self.layers:
            x = x + layer(x)
        x = x + self.lstm(x)[0] + self.cell(x[:, -1], x[:, 0]).unsqueeze(1) + self.bag(torch.arange(6).view(2, 3) % 5).sum(0)
        y, at = self.halves(self.wider(x.transpose(1, 2)))
        return self.head((self.pool(x.transpose(1, 2)) + self.pool(y) + (at > 3).double().mean()).flatten(1))


def made() -> models.Example:
    torch.manual_seed(0)
    m = Sounds().double()
    batch = torch.randn(SAMPLES, TIME, WIDTH, dtype=torch.float64), torch.randint(0, 3, (SAMPLES,))
    return m, lambda m, b: F.cross_entropy(m(b[0]), b[1]), batch, torch.optim.SGD(m.parameters(), lr=0.1)


KIND = strategies.Kind(made, "layers", ("up",), ("down",), "")


def test_training() -> None:
    for more in ({}, {"sequence": True, "mb": 2}):
        (got,) = strategies.run(made, [strategy(KIND, tensor=2, **more)])
        assert got.loss < 1e-8 and got.state < 1e-8, (more, got)
