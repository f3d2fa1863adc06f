"""Small models of the kinds that people train, each with loss, batch and optimizer."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

Example = tuple[nn.Module, Any, Any, Any]


def cross_entropy(model: Any, batch: Any) -> torch.Tensor:
    return F.cross_entropy(model(batch[0]).flatten(0, -2), batch[1].flatten())


class Cell(nn.LSTMCell):
    """One step of an LSTM layer, op by op."""

    def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        z = F.linear(x, self.weight_ih, self.bias_ih) + F.linear(h, self.weight_hh, self.bias_hh)
        i, f, g, o = z.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class LSTMLM(nn.Module):
    """A language model of LSTM cells, unrolled: cell by cell, so that a plan can cut between time steps."""

    def __init__(self, layers: int = 2, hidden: int = 256, vocab: int = 1000):
        super().__init__()
        self.hidden = hidden
        self.embedding = nn.Embedding(vocab, hidden)
        self.cells = nn.ModuleList(Cell(hidden, hidden) for _ in range(layers))
        self.head = nn.Linear(hidden, vocab)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        xs = [v for v in self.embedding(x).unbind(1)]
        for cell in self.cells:
            h = c = torch.zeros(x.shape[0], self.hidden)
            out = []
            for v in xs:
                h, c = cell(v, h, c)
                out.append(h)
            xs = out
        return torch.stack([self.head(h) for h in xs], 1)


def lstm(batch: int = 32, time: int = 16, layers: int = 2, hidden: int = 256, vocab: int = 1000) -> Example:
    torch.manual_seed(0)
    m = LSTMLM(layers, hidden, vocab)
    data = (torch.randint(0, vocab, (batch, time)), torch.randint(0, vocab, (batch, time)))
    return m, cross_entropy, data, torch.optim.SGD(m.parameters(), lr=0.1)


class Attention(nn.Module):
    """Causal self-attention as GPT-2 writes it: one projection, explicit scores."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, d // self.heads).transpose(1, 2) for y in self.c_attn(x).split(d, 2))
        scores = q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), -1)
        return self.c_proj((weights @ v).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, mlp: nn.Module):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2, self.mlp = nn.LayerNorm(width), mlp

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class MLP(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c_proj(F.gelu(self.c_fc(x)))


class MixtureMLP(nn.Module):
    """Experts behind a router that sends each token to its best two; every expert
    has room for the same number of tokens, so that shapes do not depend on values."""

    def __init__(self, width: int, experts: int, capacity: int):
        super().__init__()
        self.capacity = capacity
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(MLP(width) for _ in range(experts))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten(0, 1)
        probability = torch.softmax(self.router(flat), -1)
        out = torch.zeros_like(flat)
        for k, expert in enumerate(self.experts):
            weight, rows = probability[:, k].topk(self.capacity)
            out = out.index_add(0, rows, expert(flat[rows]) * weight[:, None])
        return out.view_as(x)


class Decoder(nn.Module):
    """A GPT-2-like decoder; its head shares the embedding's weight."""

    def __init__(self, layers: int, width: int, heads: int, vocab: int, time: int, experts: int = 0, capacity: int = 0):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(time, width)
        self.h = nn.ModuleList(Block(width, heads, MixtureMLP(width, experts, capacity) if experts else MLP(width)) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocab, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def gpt2(layers: int = 4, width: int = 256, batch: int = 4, time: int = 64, vocab: int = 2000, heads: int = 4) -> Example:
    torch.manual_seed(0)
    m = Decoder(layers, width, heads, vocab, time)
    for name, p in m.named_parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.02)
    ids = torch.randint(0, vocab, (batch, time))
    return m, cross_entropy, (ids, ids.roll(-1, 1)), torch.optim.SGD(m.parameters(), lr=0.1)


def moe(layers: int = 2, width: int = 192, batch: int = 4, time: int = 64, vocab: int = 1000, experts: int = 4) -> Example:
    torch.manual_seed(0)
    m = Decoder(layers, width, 4, vocab, time, experts, batch * time // 2)
    for name, p in m.named_parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.02)
    ids = torch.randint(0, vocab, (batch, time))
    return m, cross_entropy, (ids, ids.roll(-1, 1)), torch.optim.SGD(m.parameters(), lr=0.1)


class Branches(nn.Module):
    """Four branches side by side, as Inception's."""

    def __init__(self, c: int, k: int):
        super().__init__()
        self.a = nn.Conv2d(c, k, 1)
        self.b1, self.b2 = nn.Conv2d(c, k, 1), nn.Conv2d(k, k, 3, padding=1)
        self.c1, self.c2, self.c3 = nn.Conv2d(c, k, 1), nn.Conv2d(k, k, 3, padding=1), nn.Conv2d(k, k, 3, padding=1)
        self.d = nn.Conv2d(c, k, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b = F.relu(self.b2(F.relu(self.b1(x))))
        c = F.relu(self.c3(F.relu(self.c2(F.relu(self.c1(x))))))
        return torch.cat([F.relu(self.a(x)), b, c, F.relu(self.d(F.avg_pool2d(x, 3, 1, 1)))], 1)


class Inception(nn.Module):
    def __init__(self, blocks: int = 4, k: int = 24):
        super().__init__()
        self.stem = nn.Conv2d(3, 4 * k, 5, stride=2, padding=2)
        self.blocks = nn.Sequential(*[Branches(4 * k, k) for _ in range(blocks)])
        self.fc = nn.Linear(4 * k, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.blocks(F.relu(self.stem(x))).mean((2, 3)))


def inception(batch: int = 8, blocks: int = 4, k: int = 24, size: int = 64) -> Example:
    torch.manual_seed(0)
    m = Inception(blocks, k)
    data = (torch.randn(batch, 3, size, size), torch.randint(0, 10, (batch,)))
    return m, cross_entropy, data, torch.optim.SGD(m.parameters(), lr=0.1)


class Residual(nn.Module):
    def __init__(self, c: int, k: int, stride: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(c, k, 3, stride, 1, bias=False), nn.BatchNorm2d(k)
        self.conv2, self.bn2 = nn.Conv2d(k, k, 3, 1, 1, bias=False), nn.BatchNorm2d(k)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = nn.Sequential(nn.Conv2d(c, k, 1, stride, bias=False), nn.BatchNorm2d(k)) if stride > 1 or c != k else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet(nn.Module):
    """As torchvision's, smaller: in-place ReLU and addition, batch norm's running statistics."""

    def __init__(self, width: int = 8, classes: int = 10):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Residual(width, width, 1), Residual(width, width, 1))
        self.layer2 = nn.Sequential(Residual(width, 2 * width, 2), Residual(2 * width, 2 * width, 1))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(2 * width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(self.avgpool(self.layer2(self.layer1(x))).flatten(1))


def resnet(batch: int = 4, size: int = 32) -> Example:
    torch.manual_seed(0)
    m = ResNet()
    data = (torch.randn(batch, 3, size, size), torch.randint(0, 10, (batch,)))
    return m, cross_entropy, data, torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 and a shortcut; the stride is the middle one's, as torchvision has it."""

    def __init__(self, c: int, k: int, stride: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(c, k, 1, bias=False), nn.BatchNorm2d(k)
        self.conv2, self.bn2 = nn.Conv2d(k, k, 3, stride, 1, bias=False), nn.BatchNorm2d(k)
        self.conv3, self.bn3 = nn.Conv2d(k, 4 * k, 1, bias=False), nn.BatchNorm2d(4 * k)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = nn.Sequential(nn.Conv2d(c, 4 * k, 1, stride, bias=False), nn.BatchNorm2d(4 * k)) if c != 4 * k else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(y)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet50(nn.Module):
    """ResNet-50 (arXiv:1512.03385, table 1) with torchvision's names of modules."""

    def __init__(self, classes: int = 1000):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        c = 64
        for stage, (k, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
            made = []
            for b in range(blocks):
                made.append(Bottleneck(c, k, 2 if stage and not b else 1))
                c = 4 * k
            setattr(self, f"layer{stage + 1}", nn.Sequential(*made))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(c, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def resnet50(batch: int = 2, size: int = 224) -> Example:
    """On the meta device: nothing of it is computed."""
    with torch.device("meta"):
        m = ResNet50()
        data = (torch.zeros(batch, 3, size, size), torch.zeros(batch, dtype=torch.long))
    return m, cross_entropy, data, torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)


class LlamaLayer(nn.Module):
    """Grouped-query attention with rotary positions, RMS norms and a gated MLP, as Llama's."""

    def __init__(self, width: int, heads: int, kv_heads: int, hidden: int):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q_proj, self.o_proj = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(width, kv_heads * self.size, bias=False) for _ in range(2))
        self.gate_proj, self.up_proj = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        half = self.size // 2
        angle = torch.arange(x.shape[2], device=x.device)[:, None] / 10000 ** (torch.arange(half, device=x.device) / half)
        a, b = x[..., :half], x[..., half:]
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q = self.rotate(self.q_proj(x).view(b, t, self.heads, self.size).transpose(1, 2))
        k = self.rotate(self.k_proj(x).view(b, t, self.kv_heads, self.size).transpose(1, 2))
        v = self.v_proj(x).view(b, t, self.kv_heads, self.size).transpose(1, 2)
        k, v = (y.repeat_interleave(self.heads // self.kv_heads, 1) for y in (k, v))
        scores = q @ k.transpose(-2, -1) / self.size**0.5
        mask = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        out = torch.softmax(scores.masked_fill(~mask, float("-inf")), -1) @ v
        return self.o_proj(out.transpose(1, 2).reshape(b, t, d))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.input_layernorm(x))
        y = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))


class Llama(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, kv_heads: int, hidden: int, vocab: int):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(LlamaLayer(width, heads, kv_heads, hidden) for _ in range(layers))
        self.norm, self.lm_head = nn.RMSNorm(width), nn.Linear(width, vocab, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x))


def llama(layers: int = 80, width: int = 8192, heads: int = 64, kv_heads: int = 8, hidden: int = 28672, vocab: int = 128256, batch: int = 1, time: int = 2048) -> Example:
    """Llama 3 70B's sizes (arXiv:2407.21783, table 3) with AdamW, on the meta device."""
    with torch.device("meta"):
        m = Llama(layers, width, heads, kv_heads, hidden, vocab)
        ids = torch.zeros(batch, time, dtype=torch.long)
    return m, cross_entropy, (ids, ids), torch.optim.AdamW(m.parameters())


class Attend(nn.Module):
    """Attention of a decoder's state to the encoder's outputs [B, S, H]; returns the context [B, H]."""

    def __init__(self, hidden: int):
        super().__init__()
        self.query = nn.Linear(hidden, hidden, bias=False)

    def forward(self, memory: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        scores = torch.softmax((memory @ self.query(x)[:, :, None])[:, :, 0], -1)
        return (scores[:, None] @ memory)[:, 0]


class GNMT(nn.Module):
    """An encoder and a decoder of LSTM layers as GNMT's: attention at each decoder
    step, whose context goes to every decoder layer of the next one, residual
    connections from the third layer on."""

    def __init__(self, layers: int = 2, hidden: int = 256, vocab: int = 1000):
        super().__init__()
        self.hidden = hidden
        self.source, self.target = nn.Embedding(vocab, hidden), nn.Embedding(vocab, hidden)
        self.encoder = nn.ModuleList(Cell(hidden, hidden) for _ in range(layers))
        self.decoder = nn.ModuleList(Cell(2 * hidden, hidden) for k in range(layers))
        self.attention = Attend(hidden)
        self.head = nn.Linear(2 * hidden, vocab)

    def forward(self, both: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        source, target = both
        zero = torch.zeros(source.shape[0], self.hidden)
        xs = list(self.source(source).unbind(1))
        for k, cell in enumerate(self.encoder):
            h = c = zero
            out = []
            for v in xs:
                h, c = cell(v, h, c)
                out.append(h + v if k >= 2 else h)
            xs = out
        memory = torch.stack(xs, 1)
        states = [(zero, zero) for _ in self.decoder]
        context = zero
        logits = []
        for x in self.target(target).unbind(1):
            for k, cell in enumerate(self.decoder):
                states[k] = cell(torch.cat([x, context], 1), *states[k])
                x = states[k][0] + x if k >= 2 else states[k][0]
            context = self.attention(memory, x)
            logits.append(self.head(torch.cat([x, context], 1)))
        return torch.stack(logits, 1)


def gnmt(batch: int = 32, time: int = 10, layers: int = 2, hidden: int = 256, vocab: int = 1000) -> Example:
    torch.manual_seed(0)
    m = GNMT(layers, hidden, vocab)
    data = tuple(torch.randint(0, vocab, (batch, time)) for _ in range(3))
    loss = lambda model, b: F.cross_entropy(model((b[0], b[1])).flatten(0, 1), b[2].flatten())  # noqa: E731
    return m, loss, data, torch.optim.SGD(m.parameters(), lr=0.1)


def tiny(optimizer: str = "sgd") -> Example:
    """Two linear layers, and dropout."""
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 4))
    data = (torch.randn(6, 8), torch.randint(0, 4, (6,)))
    make = {"sgd": lambda p: torch.optim.SGD(p, lr=0.1), "adam": lambda p: torch.optim.Adam(p, lr=0.01)}[optimizer]
    return m, cross_entropy, data, make(m.parameters())
