"""nn.MultiheadAttention cut by heads, in two processes, beside torch's own."""

from __future__ import annotations

import copy
from typing import Any, Callable

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import models
import strategies
from placer_torch.parallel import distribute
from placer_torch.parallel.errors import StrategyError
from strategies import SAMPLES, TIME, VOCABULARY

pytestmark = pytest.mark.forks

E, HEADS, OTHER = 16, 4, 6  # OTHER tokens are attended to
CAUSAL = torch.ones(TIME, TIME).triu(1).bool()
PADDING = torch.zeros(SAMPLES, TIME).bool()
PADDING[:, -2:] = True


class Block(nn.Module):
    """An nn.MultiheadAttention and what is done with it, with weights as a second result."""

    def __init__(self, attend: Callable[..., Any], **how: Any):
        super().__init__()
        self.attention, self.attend = nn.MultiheadAttention(E, HEADS, **{"batch_first": True, **how}), attend

    def forward(self, x: torch.Tensor) -> Any:
        return self.attend(self.attention, x)


def seen(x: torch.Tensor) -> torch.Tensor:
    """Of other tokens than x, as many samples."""
    return x[:, :OTHER].flip(1) * 0.5


BLOCKS: dict[str, Callable[[], nn.Module]] = {
    "alone": lambda: Block(lambda m, x: m(x, x, x, need_weights=False)),
    "with weights": lambda: Block(lambda m, x: m(x, x, x)),
    "with weights of each head": lambda: Block(lambda m, x: m(x, x, x, average_attn_weights=False)),
    "without biases": lambda: Block(lambda m, x: m(x, x, x, need_weights=False), bias=False),
    "time first": lambda: Block(lambda m, x: m(*[x.transpose(0, 1)] * 3, need_weights=False), batch_first=False),
    "of other tokens": lambda: Block(lambda m, x: m(x, seen(x), seen(x), need_weights=False)),
    "of other tokens, one tensor": lambda: Block(lambda m, x: (lambda y: m(x, y, y, need_weights=False))(seen(x))),
    "causal": lambda: Block(lambda m, x: m(x, x, x, need_weights=False, attn_mask=CAUSAL, is_causal=True)),
    "causal, padded": lambda: Block(lambda m, x: m(x, x, x, key_padding_mask=PADDING, attn_mask=CAUSAL, is_causal=True)),
    "padded": lambda: Block(lambda m, x: m(x, x, x, need_weights=False, key_padding_mask=PADDING)),
    "added": lambda: Block(lambda m, x: m(x, x, x, need_weights=False, attn_mask=torch.linspace(-1, 1, TIME * TIME, dtype=x.dtype).view(TIME, TIME))),
    "masks of each head": lambda: Block(lambda m, x: m(x, x, x, attn_mask=torch.linspace(-1, 1, SAMPLES * HEADS * TIME * TIME, dtype=x.dtype).view(-1, TIME, TIME))),
    "one sample": lambda: Block(lambda m, x: m(x[0], x[0], x[0])),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_values_and_gradients(name: str) -> None:
    torch.manual_seed(0)
    block, x = BLOCKS[name]().double(), torch.randn(SAMPLES, TIME, E, dtype=torch.float64)

    def loss(m: Any, x: torch.Tensor) -> torch.Tensor:
        y, weights = m(x)
        return (y**2).mean() + (0 if weights is None else (weights**2).mean())

    def work() -> tuple[float, float]:
        got = copy.deepcopy(block)
        want = copy.deepcopy(block)
        t = distribute(got, loss, torch.optim.SGD(got.parameters(), lr=1.0), split("attention"), device="cpu")
        losses = [t.step(x) for _ in range(2)]
        o = torch.optim.SGD(want.parameters(), lr=1.0)
        off = 0.0
        for value in losses:
            o.zero_grad()
            y = loss(want, x)
            y.backward()
            o.step()
            off = max(off, abs(float(y) - value))
        state = t.state_dict()
        return (off, max(float((state[k] - v).abs().max()) for k, v in want.state_dict().items())) if dist.get_rank() == 0 else (0.0, 0.0)

    off, state = strategies.in_processes(2, work)
    assert off < 1e-13 and state < 1e-13


def split(*attentions: str, feed: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """A strategy of two parts."""
    doc = {"format": "placer strategy 1", "batch": SAMPLES, "data": 1, "sharding": "ddp", "tensor": 2, "layers": []}
    doc |= {"columns": [*attentions, *(f"{p}.linear1" for p in feed)], "rows": [*(f"{p}.out_proj" for p in attentions), *(f"{p}.linear2" for p in feed)]}
    return doc | {"parts": {p: [E] * 3 for p in attentions}} | more


class Translator(nn.Module):
    """torch's own encoder and decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(VOCABULARY, E), nn.Linear(E, VOCABULARY)
        self.core = nn.Transformer(E, HEADS, 1, 1, 32, 0.0, batch_first=True)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        y = self.table(ids)
        return self.head(self.core(y.flip(1), y, tgt_mask=CAUSAL))


def translator() -> models.Example:
    torch.manual_seed(0)
    m = Translator().double()
    ids = torch.randint(0, VOCABULARY, (SAMPLES, TIME))
    return m, lambda m, b: F.cross_entropy(m(b[0]).flatten(0, 1), b[1].flatten()), (ids, ids.roll(1, 1)), torch.optim.AdamW(m.parameters(), lr=0.01)


ATTENTIONS = ("core.encoder.layers.0.self_attn", "core.decoder.layers.0.self_attn", "core.decoder.layers.0.multihead_attn")
FEED = ("core.encoder.layers.0", "core.decoder.layers.0")
LAYERS = [[p] for p in FEED]


def test_a_transformer() -> None:
    """nn.Transformer trains as by plain torch; each block all-reduces one activation in either pass,
    and attention to the encoder's results two gradients of inputs."""
    vocabulary = {"vocabulary": True, "vocabulary_columns": ["head"], "vocabulary_rows": ["table"]}
    docs: list[dict[str, Any]] = [{}, {"micro_batches": 2, "recompute": "layers"}, vocabulary, vocabulary | {"sequence": True}]
    found = strategies.run(translator, [split(*ATTENTIONS, feed=FEED, layers=LAYERS, **more) for more in docs])
    for more, got in zip(docs, found, strict=True):
        assert got.loss < 1e-10 and got.state < 1e-8, (more, got)
    assert found[0].calls == {"all_reduce": 5 + 6}
    (got,) = strategies.run(translator, [split(*ATTENTIONS, feed=FEED, layers=LAYERS, data=2, sharding="zero-3")])
    assert got.loss < 1e-10 and got.state < 1e-8


def test_a_loss_that_is_no_mean() -> None:
    """Is looked for in evaluation, where torch has kernels for whole layers, as for the encoder's,
    which is not cut here."""
    model, _, batch, optimizer = translator()
    doc = split(*ATTENTIONS[1:], feed=FEED[1:], layers=LAYERS, micro_batches=2)

    def work() -> float:
        return distribute(model, lambda m, b: F.cross_entropy(m(b[0]).flatten(0, 1), b[1].flatten(), reduction="sum"), optimizer, doc, device="cpu").step(batch)

    with pytest.raises(StrategyError, match="no mean over samples"):
        strategies.in_processes(2, work)


class Own(nn.MultiheadAttention):
    def forward(self, *of: Any, **named: Any) -> Any:
        return super().forward(*of, **named)


@pytest.mark.parametrize(
    "attention, of, words",
    [
        (lambda: Own(E, HEADS), {}, "is a Own with a forward of its own"),
        (lambda: nn.MultiheadAttention(E, 1), {}, "has num_heads 1, which 2 parts cannot share out"),
        (lambda: nn.MultiheadAttention(E, HEADS, kdim=8), {}, "with kdim or vdim"),
        (lambda: nn.MultiheadAttention(E, HEADS, add_bias_kv=True), {}, "with add_bias_kv"),
        (lambda: nn.MultiheadAttention(E, HEADS, add_zero_attn=True), {}, "with add_zero_attn"),
        (lambda: nn.MultiheadAttention(E, HEADS), {"rows": []}, "parts of [16, 16, 16] columns, and rows of its out_proj are cut, or nothing"),
        (lambda: nn.MultiheadAttention(E, HEADS), {"parts": {}}, "parts of [16, 16, 16] columns"),
        (lambda: nn.MultiheadAttention(E, HEADS), {"pipeline": 2, "schedule": "gpipe", "stages": [["attention"], []]}, "is not cut in a pipeline"),
    ],
)
def test_refused(attention: Callable[[], nn.Module], of: dict[str, Any], words: str) -> None:
    m = nn.Module()
    m.attention = attention()
    with pytest.raises(StrategyError) as e:
        distribute(m, lambda m, b: b, torch.optim.SGD(m.parameters()), split("attention", **of), device="cpu")
    assert str(e.value).startswith("module attention ") and words in str(e.value)
