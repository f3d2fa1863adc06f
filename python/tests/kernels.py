"""A small decoder whose attention is one kernel, and whose positions and shifted labels are its own."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

import models

SAMPLES, WIDTH, HEADS, VOCABULARY = 8, 16, 4, 32
LAYERS = [["layers.0"], ["layers.1"]]


class Layer(nn.Module):
    """Attention in one kernel, with half as many heads of keys and values, masked as `mask` says."""

    def __init__(self, mask: str):
        super().__init__()
        self.mask = mask
        self.norm, self.q, self.kv, self.o = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        y = self.norm(x)
        q = self.q(y).view(b, t, HEADS, -1).transpose(1, 2)
        k, v = (z.view(b, t, HEADS // 2, -1).transpose(1, 2) for z in self.kv(y).chunk(2, -1))
        mask = torch.ones(t, t, dtype=torch.bool).tril().triu(-2) if self.mask == "window" else None
        a = F.scaled_dot_product_attention(q, k, v, mask, is_causal=self.mask == "causal", enable_gqa=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(x)))


class Decoder(nn.Module):
    """Positions are the model's own, and so are shifted labels; the head is the table."""

    def __init__(self, mask: str, tokens: int):
        super().__init__()
        self.table, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(tokens, WIDTH)
        self.layers = nn.ModuleList(Layer(mask) for _ in LAYERS)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids) + self.positions(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        labels = F.pad(ids, (0, 1), value=-100)[:, 1:].contiguous()
        return F.cross_entropy(F.linear(x, self.table.weight).view(-1, VOCABULARY), labels.view(-1))


def decoder(mask: str = "none", tokens: int = 16) -> models.Example:
    torch.manual_seed(0)
    model = Decoder(mask, tokens).double()
    return model, lambda model, batch: model(batch), torch.randint(0, VOCABULARY, (SAMPLES, tokens)), torch.optim.AdamW(model.parameters(), lr=0.01)
