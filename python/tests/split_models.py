"""Small models whose products ranks can share out as modules, or cannot: what placer/strategies/torch tells apart."""

from __future__ import annotations

from typing import Any, Callable

import models
import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH, HEADS, TIME, CLASSES = 16, 4, 8, 12


class Attention(nn.Module):
    """Queries, keys and values by one layer or by three, which is `parts` of columns."""

    def __init__(self, parts: str):
        super().__init__()
        self.parts = parts
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH // HEADS) if parts == "normed" else Averaged() if parts == "averaged" else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        y = self.qkv(x)
        if self.parts == "outer":  # all queries, then all keys, then all values
            q, k, v = y.view(b, t, 3, HEADS, d // HEADS).unbind(2)
        else:  # those of a head side by side, as GPT-NeoX has them
            q, k, v = y.view(b, t, HEADS, 3, d // HEADS).unbind(3)
        if self.norm is not None:
            q, k = self.norm(q), self.norm(k)
        z = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        return self.out(z.transpose(1, 2).reshape(b, t, d))


class Averaged(nn.Module):
    """The norm of each head in single ops, as transformers' Qwen3 and Gemma 3 have it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH // HEADS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


class Gated(nn.Module):
    """Gate and up by one layer: neighbouring halves, or a dimension of their own."""

    def __init__(self, parts: str):
        super().__init__()
        self.parts = parts
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(x)
        gate, up = y.chunk(2, -1) if self.parts == "halves" else y.view(*y.shape[:2], 2, -1).unbind(2)
        return self.down(F.silu(gate) * up)


class Experts(nn.Module):
    """Attention, and a feed-forward layer of four experts, of which each token takes one: products of
    groups of rows, as transformers' mixtures have them."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.router = Attention("inner"), nn.Linear(WIDTH, 4, bias=False)
        self.up, self.down = nn.Parameter(torch.randn(4, WIDTH, 2 * WIDTH)), nn.Parameter(torch.randn(4, 2 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(x)
        rows = x.flatten(0, 1)
        weight, expert = self.router(rows).softmax(-1).max(-1)
        order = expert.argsort()
        ends = torch.arange(4).eq(expert[order][:, None]).sum(0).cumsum(0, dtype=torch.int32)
        y = torch._grouped_mm(F.relu(torch._grouped_mm(rows[order], self.up, ends)), self.down, ends)
        return x + (y * weight[order][:, None])[order.argsort()].view(x.shape)


class Joined(nn.Module):
    """Two layers' results side by side in front of one."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.cat([F.relu(self.a(x)), F.relu(self.b(x))], -1))


class Conv1D(nn.Module):
    """As in transformers' GPT-2: a linear layer whose weight has a row for each input."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs)), nn.Parameter(torch.zeros(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.bias, x.flatten(0, 1), self.weight).view(*x.shape[:2], -1)


class Feed(nn.Module):
    """A feed-forward block of given layers, with a factor of its own for each column where it is scaled."""

    def __init__(self, up: nn.Module, down: nn.Module, scaled: bool = False):
        super().__init__()
        self.up, self.down = up, down
        self.scale = nn.Parameter(torch.ones(2 * WIDTH)) if scaled else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.up(x))
        return self.down(y if self.scale is None else y * self.scale)


class Crossed(nn.Module):
    """A feed-forward block along the tokens, as MLP-Mixer's, whose products copy what was transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(TIME, 2 * TIME), nn.Linear(2 * TIME, TIME)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.relu(self.up(x.transpose(1, 2)))).transpose(1, 2)


class Behind(nn.Module):
    """A layer whose norms are behind its sums, as BERT's: what goes around a block is also what the block reads."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.feed = Feed(nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH))
        self.norm, self.last_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = (f(x).view(b, t, HEADS, d // HEADS).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = self.norm(x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)))
        return self.last_norm(x + self.feed(x))


class Encoder(nn.Module):
    """BERT in short, or of other layers."""

    def __init__(self, layer: type[nn.Module] = Behind) -> None:
        super().__init__()
        self.table = nn.Embedding(CLASSES, WIDTH)
        self.layers = nn.ModuleList([layer(), layer()])
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def encoder(samples: int = 2) -> models.Example:
    torch.manual_seed(0)
    m = Encoder()
    ids = torch.randint(0, CLASSES, (samples, TIME))
    return m, models.cross_entropy, (ids, ids.roll(1, 0)), torch.optim.SGD(m.parameters(), lr=0.1)


def linear(a: int, b: int) -> nn.Module:
    return nn.Linear(a, b)


BLOCKS: dict[str, Callable[[], nn.Module]] = {
    "outer": lambda: Attention("outer"),
    "inner": lambda: Attention("inner"),
    "normed": lambda: Attention("normed"),
    "averaged": lambda: Attention("averaged"),
    "packed": Packed,
    "halves": lambda: Gated("halves"),
    "viewed": lambda: Gated("viewed"),
    "experts": Experts,
    "apart": lambda: models.MixtureMLP(WIDTH, 2, TIME),
    "joined": Joined,
    "conv1d": lambda: Feed(Conv1D(WIDTH, 2 * WIDTH), Conv1D(2 * WIDTH, WIDTH)),
    "crossed": Crossed,
    "scaled": lambda: Feed(linear(WIDTH, 2 * WIDTH), linear(2 * WIDTH, WIDTH), scaled=True),
}


def block(kind: str) -> models.Example:
    """A block of a kind, and a head."""
    torch.manual_seed(0)
    m = nn.Sequential(BLOCKS[kind](), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES))
    data: Any = (torch.randn(2, TIME, WIDTH), torch.randint(0, CLASSES, (2, TIME)))
    return m, models.cross_entropy, data, torch.optim.SGD(m.parameters(), lr=0.1)
