"""What a strategy cannot be applied to, said before anything is changed."""

from __future__ import annotations

import torch
from torch import nn

from .errors import StrategyError
from .strategy import Strategy


def check(model: nn.Module, optimizer: torch.optim.Optimizer, s: Strategy) -> None:
    there = dict(model.named_modules())
    for key in ("columns", "rows", "vocabulary_columns", "vocabulary_rows", "by_rows"):
        for path in getattr(s, key):
            if path not in there:
                raise StrategyError(f"{key}: the model has no module {path!r}")
