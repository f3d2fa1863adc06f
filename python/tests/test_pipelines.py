"""Steps of pipelines have the losses and weights of plain torch's (placer_torch.parallel)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import mixtures
import models
from pipelines import plain, run, strategy
from placer_torch.errors import PlacerTorchError, RunError

pytestmark = pytest.mark.forks

PRODUCTS = {"columns": [f"h.{k}.{m}" for k in range(4) for m in ("attn.c_attn", "mlp.c_fc")], "rows": [f"h.{k}.{m}.c_proj" for k in range(4) for m in ("attn", "mlp")]}
LAYERS = [[f"h.{k}"] for k in range(4)]
TWO = [["wte", "wpe", "h.0", "h.1"], ["h.2", "h.3", "ln_f", "lm_head"]]
FOUR = [["wte", "wpe", "h.0"], ["h.1"], ["h.2"], ["h.3", "ln_f", "lm_head"]]


def gpt() -> models.Example:
    """Its head shares the embedding's weight: the first stage and the last."""
    return models.gpt2(layers=4, width=32, batch=16, time=16, vocab=100)


def untied() -> models.Example:
    m, loss, batch, _ = gpt()
    m.lm_head.weight = nn.Parameter(m.wte.weight.detach().clone())
    return m, loss, batch, torch.optim.SGD(m.parameters(), lr=0.1)


class Skip(nn.Module):
    """The last stage reads what the first makes; integers cross; statistics, a counter, ops in
    place, a parameter without a module of its own, one that is frozen, and one that nothing reads."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.unread = nn.Parameter(torch.ones(16)), nn.Parameter(torch.ones(3))
        self.a, self.b, self.c, self.d = (nn.Linear(16, 16) for _ in range(4))
        self.bn = nn.BatchNorm1d(16)
        self.register_buffer("count", torch.zeros(()))
        self.b.weight.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.a(x) * self.scale
        top = x.argmax(-1, keepdim=True)
        y = self.bn(torch.relu_(self.b(x)))
        z = self.c(y)
        z += x
        self.count += 1
        return self.d(z.gather(-1, top) + z)


def skip() -> models.Example:
    torch.manual_seed(0)
    m = Skip()
    batch = {"x": torch.randn(32, 16), "weight": 2.0, "y": torch.randn(32, 16)}
    return m, lambda m, b: b["weight"] * ((m(b["x"]) - b["y"]) ** 2).mean(), batch, torch.optim.SGD([p for p in m.parameters() if p.requires_grad], lr=0.02, momentum=0.9)


SKIP_TWO, SKIP_FOUR = [["a", "b"], ["bn", "c", "d"]], [["a"], ["b", "bn"], ["c"], ["d"]]


def frozen() -> models.Example:
    """A first stage without anything to train."""
    torch.manual_seed(0)
    m = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 20))
    m[0].requires_grad_(False)
    ids = torch.randint(0, 20, (16, 5))
    return m, models.cross_entropy, (ids, ids), torch.optim.AdamW(m[1:].parameters(), lr=1e-2)


def dropout() -> models.Example:
    """All of it in the first stage, whose process draws what one process would."""
    torch.manual_seed(0)
    m = nn.Sequential(nn.Sequential(nn.Linear(8, 32), nn.Dropout(0.5)), nn.Linear(32, 8))
    return m, lambda m, b: (m(b) ** 2).mean(), torch.randn(16, 8), torch.optim.SGD(m.parameters(), lr=0.1)


@torch.library.custom_op("placer_tests::halved", mutates_args=())
def halve(x: torch.Tensor) -> torch.Tensor:
    """Its kernel makes numbers of 16 bits, where a trace has those of 32: as oneDNN's of recurrent
    layers under autocast, which not every processor has."""
    return x.bfloat16()


halve.register_fake(torch.empty_like)
halve.register_autograd(lambda _, grad: grad.float())


class Halved(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return halve(super().forward(x))


class Widened(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.float())


def halved() -> models.Example:
    torch.manual_seed(0)
    m, ids = nn.Sequential(nn.Embedding(20, 8), Halved(8, 8), Widened(8, 20)), torch.randint(0, 20, (16, 5))
    return m, models.cross_entropy, (ids, ids), torch.optim.SGD(m.parameters(), lr=0.1)


class Viewed(nn.Module):
    """Views what attention makes by strides that its kernel gives it, and the one on cut tensors does not."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = (y.view(b, t, 4, d // 4).transpose(1, 2) for y in self.qkv(x).split(d, dim=2))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).contiguous().view(b, t, d))


def viewed() -> models.Example:
    torch.manual_seed(0)
    m = nn.Sequential(Viewed(), Viewed())
    return m, lambda m, b: (m(b) ** 2).mean(), torch.randn(16, 8, 16), torch.optim.SGD(m.parameters(), lr=0.1)


def rows() -> models.Example:
    """Rows go to experts as a router chooses them, at another number in each process."""
    m, loss, batch, _ = mixtures.chosen(16)
    return m, loss, batch, torch.optim.SGD(m.parameters(), lr=0.1)


def blocks() -> models.Example:
    return mixtures.blocks(16)


def shared(schedule: str, stages: list[list[str]], data: int = 2, ranks: int = 2, **more: Any) -> dict[str, Any]:
    """Of a mixture whose experts `ranks` of its replicas share out."""
    layers = [f"layers.{k}" for k in range(mixtures.LAYERS)]
    return strategy(schedule, stages, ranks=2, data=data, layers=[[x] for x in layers], expert_ranks=ranks, experts=[f"{x}.experts" for x in layers], **more)


MIXTURE_TWO, MIXTURE_FOUR = [["table", "layers.0"], ["layers.1", "head"]], [["table"], ["layers.0"], ["layers.1"], ["head"]]


# What `placer strategies --gpu a100 --gpus 2 --batch 16 --for torch --strategy TEXT` writes of the
# captured step of untied(), and of gpt(): stages and what rank 0 sends and reduces in a step.
WRITTEN = {
    "interleaved=2 chunks=2 mb=4": strategy("interleaved", FOUR, ranks=2, layers=LAYERS, collectives={"send": {"calls": 12, "bytes": 98304}}),
    "gpipe=2 mb=8": strategy("gpipe", TWO, micro_batches=8, layers=LAYERS, collectives={"send": {"calls": 8, "bytes": 32768}}),
}
WRITTEN_TIED = {
    "gpipe=2 mb=4": strategy("gpipe", TWO, layers=LAYERS, collectives={"all_reduce": {"calls": 1, "bytes": 12800}, "send": {"calls": 4, "bytes": 32768}}),
    "1f1b=2 mb=8": strategy("1f1b", TWO, micro_batches=8, layers=LAYERS, collectives={"all_reduce": {"calls": 1, "bytes": 12800}, "send": {"calls": 8, "bytes": 32768}}),
}
LOSS = {"calls": 1, "bytes": 8}  # all-reduced once a step, which no strategy has
CASES = {
    **{text: (untied, s) for text, s in WRITTEN.items()},
    **{f"tied, {text}": (gpt, s) for text, s in WRITTEN_TIED.items()},
    "tied, gpipe": (gpt, strategy("gpipe", TWO)),
    "tied, 1f1b of 8": (gpt, strategy("1f1b", TWO, micro_batches=8)),
    "tied, interleaved": (gpt, strategy("interleaved", FOUR, ranks=2)),
    "tied, interleaved of 8, layers again": (gpt, strategy("interleaved", FOUR, ranks=2, micro_batches=8, recompute="layers", layers=LAYERS)),
    "skip, gpipe of 8": (skip, strategy("gpipe", SKIP_TWO, micro_batches=8)),
    "skip, interleaved": (skip, strategy("interleaved", SKIP_FOUR, ranks=2)),
    "skip, 4 stages": (skip, strategy("1f1b", SKIP_FOUR)),
    "the loss is a stage": (frozen, strategy("1f1b", [["0"], ["1", "3"], []])),
    "the loss is a stage, zero-1": (skip, strategy("gpipe", [["a", "b", "bn", "c", "d"], []], data=2, sharding="zero-1")),
    "frozen": (frozen, strategy("1f1b", [["0"], ["1", "3"]])),
    "dropout": (dropout, strategy("gpipe", [["0"], ["1"]])),
    "dropout, again": (dropout, strategy("1f1b", [["0"], ["1"]], recompute="layers", layers=[["0"]])),
    "statistics": (lambda: models.resnet(batch=16), strategy("1f1b", [["conv1", "bn1", "layer1"], ["layer2", "fc"]])),
    "replicas, gpipe": (gpt, strategy("gpipe", TWO, data=2)),
    "replicas, interleaved of 8": (skip, strategy("interleaved", SKIP_FOUR, ranks=2, data=2, micro_batches=8)),
    "zero-1": (gpt, strategy("1f1b", TWO, data=2, sharding="zero-1", layers=LAYERS)),
    "zero-2": (gpt, strategy("gpipe", TWO, data=2, sharding="zero-2", layers=LAYERS)),
    "products": (gpt, strategy("1f1b", TWO, tensor=2, **PRODUCTS)),
    "products, views": (viewed, strategy("gpipe", [["0"], ["1"]], tensor=2, columns=["0.qkv", "1.qkv"], rows=["0.out", "1.out"], parts={"0.qkv": [16] * 3, "1.qkv": [16] * 3})),
    "products, tokens and a tied vocabulary": (gpt, strategy("interleaved", FOUR, ranks=2, tensor=2, layers=LAYERS, recompute="layers", sequence=True, vocabulary=True, vocabulary_columns=["lm_head"], vocabulary_rows=["wte"], **PRODUCTS)),
    "experts": (rows, shared("1f1b", MIXTURE_TWO)),
    "experts, interleaved, zero-1": (rows, shared("interleaved", MIXTURE_FOUR, sharding="zero-1")),
    "experts, zero-3, layers again": (blocks, shared("gpipe", MIXTURE_TWO, sharding="zero-3", recompute="layers")),
    "experts that two replicas have each": (blocks, shared("1f1b", MIXTURE_TWO, data=4, micro_batches=2, sharding="zero-2")),
    "experts that two replicas have each, ddp": (rows, shared("1f1b", MIXTURE_TWO, data=4, micro_batches=2)),
    "zero-3, layers again": (gpt, strategy("interleaved", FOUR, ranks=2, data=2, sharding="zero-3", layers=LAYERS, recompute="layers")),
}


@pytest.mark.parametrize("name", CASES)
def test_steps_are_plain_torch(name: str) -> None:
    make, s = CASES[name]
    got, want = run(make, s, seed=5), plain(make, s, seed=5)
    assert got.losses == pytest.approx(want.losses, abs=1e-5)
    assert list(got.state) == list(want.state)
    for k, x in want.state.items():
        torch.testing.assert_close(got.state[k], x, atol=1e-5, rtol=0, msg=lambda m: f"{k}: {m}")
    assert got.sent == got.said
    if "collectives" in s:
        assert got.sent[0] == s["collectives"]["send"]
        assert got.reduced[0] == {k: v + s["collectives"].get("all_reduce", {}).get(k, 0) for k, v in LOSS.items()}


def test_numbers_of_16_bits_that_cross() -> None:
    """They are received as they were sent. Rounded to bfloat16, of which 8 bits are left."""
    s = strategy("1f1b", [["0", "1"], ["2"]])
    got, want = run(halved, s, seed=5), plain(halved, s, seed=5)
    assert got.losses == pytest.approx(want.losses, rel=2**-8)
    for k, x in want.state.items():
        torch.testing.assert_close(got.state[k], x, atol=2**-8, rtol=0, msg=lambda m: f"{k}: {m}")


@pytest.mark.parametrize("make, s", [(frozen, strategy("1f1b", [["0"], ["1", "3"]])), (blocks, shared("1f1b", MIXTURE_TWO)), (lambda: adam(gpt()), strategy("gpipe", TWO, data=2, sharding="zero-3", layers=LAYERS)), (lambda: several(untied()), strategy("1f1b", TWO))])
def test_training_goes_on_from_its_state(make: Any, s: dict[str, Any]) -> None:
    got, want = run(make, s, resumed=True), plain(make, s)
    assert got.losses == pytest.approx(want.losses, abs=1e-5)
    for k, x in want.state.items():
        torch.testing.assert_close(got.state[k], x, atol=1e-5, rtol=0)


def adam(example: models.Example) -> models.Example:
    m, loss, batch, _ = example
    return m, loss, batch, torch.optim.Adam(m.parameters(), lr=1e-3, eps=1e-4)


def several(example: models.Example) -> models.Example:
    """An optimizer of matrices beside one of all else."""
    m, loss, batch, _ = example
    matrices, rest = ([p for p in m.parameters() if (p.dim() == 2) is two] for two in (True, False))
    return m, loss, batch, [torch.optim.SGD(matrices, lr=0.1, momentum=0.9), torch.optim.Adam(rest, lr=1e-3, eps=1e-4)]


def test_the_second_batch_has_to_be_as_the_first() -> None:
    m, loss, batch, optimizer = skip()
    batches = iter([batch, {**batch, "weight": 3.0}])
    with pytest.raises(RunError, match="other numbers, strings or keys"):
        run(lambda: (m, loss, batch, optimizer), strategy("gpipe", SKIP_TWO), batches=batches)


def test_stages_have_to_be_given_one_batch() -> None:
    def make() -> models.Example:
        m, loss, batch, optimizer = skip()
        return m, loss, {**batch, "x": batch["x"] + torch.distributed.get_rank()}, optimizer

    with pytest.raises(PlacerTorchError, match="the 2 processes of replica 0 were given different batches"):
        run(make, strategy("gpipe", SKIP_TWO))


@pytest.mark.parametrize(
    "s, why",
    [
        (strategy("1f1b", FOUR, micro_batches=2), "2 micro-batches, and 1f1b wants 4 or more"),
        (strategy("interleaved", FOUR, ranks=2, micro_batches=5, batch=20), "5 micro-batches, and interleaved wants a multiple of 2"),
        (strategy("gpipe", FOUR, ranks=2), "2 stages a rank, of schedule gpipe"),
    ],
)
def test_strategies_that_no_schedule_runs(s: dict[str, Any], why: str) -> None:
    with pytest.raises(PlacerTorchError, match=why):
        run(gpt, s)
