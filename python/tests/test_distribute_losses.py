"""Losses that do more than call the model, in processes over gloo."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import mixtures
import models
import pipelines
import strategies
from placer_torch.clipping import Clip
from placer_torch.parallel import check, distribute, micro
from strategies import KINDS, SAMPLES, Kind, strategy

pytestmark = pytest.mark.forks

# Everything is float64.
CLOSE = 1e-8
SHARINGS = ("ddp", "zero-1", "zero-2", "zero-3")
WIDTH, TIME = 8, 4


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(self.up(self.norm(x)).tanh())


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)
        self.layers = nn.ModuleList([Block(), Block()])
        self.out = nn.Linear(WIDTH, 1)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(x)
        for layer in self.layers:
            x = layer(x)
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.encode(x))


def example(model: nn.Module, loss: Any) -> models.Example:
    model.double()
    batch = torch.randn(SAMPLES, TIME, WIDTH, dtype=torch.float64), torch.randn(SAMPLES, TIME, 1, dtype=torch.float64)
    return model, loss, batch, torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)


def parts() -> models.Example:
    torch.manual_seed(0)
    return example(Net(), lambda m, b: F.mse_loss(m.out(m.encode(b[0])), b[1]))


NET = Kind(parts, "layers", ("up",), ("down",), "")


def trained(make: Any, *of: dict[str, Any], clip: Clip = Clip()) -> None:
    docs = [strategy(NET, **x) for x in of]
    for doc, got in zip(docs, strategies.run(make, docs, clip=clip), strict=True):
        assert max(got.loss, got.state, got.norm) < CLOSE, (doc["strategy"], got)


def test_parts_of_the_model() -> None:
    """A loss that calls these, and never the model."""
    more: list[dict[str, Any]] = [{}, {"mb": 2, "recompute": True}]
    trained(parts, *({"sharding": s, "data": 2, **x} for s in SHARINGS for x in more))
    trained(parts, {"tensor": 2}, {"tensor": 2, "mb": 2, "recompute": True})


def test_parts_of_the_model_with_cut_products() -> None:
    trained(parts, *({"sharding": s, "data": 2, "tensor": 2, "mb": 2} for s in ("ddp", "zero-3")))


@pytest.mark.parametrize("sharding", SHARINGS)
def test_the_model_is_called_between_steps(sharding: str) -> None:
    """And before the first, on a batch of each process's own."""

    def work() -> float:
        model, loss, batch, optimizer = parts()
        plain, of_plain = copy.deepcopy((model, optimizer))
        t = distribute(model, loss, optimizer, strategy(NET, sharding, 2), device="cpu")
        off = 0.0
        for _ in range(3):
            with torch.no_grad():
                off = max(off, float((t.model(batch[0]) - plain(batch[0])).abs().max()))
            t.step(micro.part(batch, t.replica, 2))
            of_plain.zero_grad()
            loss(plain, batch).backward()
            of_plain.step()
        return off

    assert strategies.in_processes(2, work) < CLOSE


class Mixture(Net):
    """Of experts of which a replica's samples take some alone, and none the last."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(WIDTH, 1) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = x[:, 0, 0] > 1e3
        x = x - 1e4 * chosen[:, None, None]
        y, h = super().forward(x), self.encode(x)
        for k, of in enumerate((chosen, ~chosen)):
            if of.any():
                y = y.index_add(0, of.nonzero()[:, 0], self.experts[k](h[of]))
        return y


def mixture() -> models.Example:
    torch.manual_seed(0)
    model, loss, (x, y), optimizer = example(Mixture(), lambda m, b: F.mse_loss(m(b[0]), b[1]))
    x[: SAMPLES // 4] += 1e4
    return model, loss, (x, y), optimizer


def test_unused_parameters() -> None:
    """Weight decay is of parameters with gradients alone."""
    trained(mixture, {"data": 2}, {"data": 2, "mb": 4}, {"data": 2, "mb": 2, "recompute": True}, clip=Clip(0.1))


def penalised() -> models.Example:
    """A penalty of the gradients of the inputs."""

    def loss(m: Any, b: Any) -> torch.Tensor:
        x = b[0].clone().requires_grad_()
        y = m(x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return F.mse_loss(y, b[1]) + ((g.norm(dim=-1) - 1) ** 2).mean()

    torch.manual_seed(0)
    return example(Net(), loss)


def test_gradients_of_gradients() -> None:
    trained(penalised, *({"sharding": s, "data": 2, "mb": mb} for s in SHARINGS for mb in (1, 2)))
    trained(penalised, {"tensor": 2}, {"tensor": 2, "mb": 2}, {"tensor": 2, "sequence": True})


def test_gradients_of_gradients_with_shares_of_cut_products() -> None:
    trained(penalised, *({"sharding": s, "data": 2, "tensor": 2} for s in ("ddp", "zero-3")))


MEANS = {
    "mse": F.mse_loss,
    "module": nn.SmoothL1Loss(),
    "huber": F.huber_loss,
    "as it was": lambda y, t: F.smooth_l1_loss(y, t, size_average=True),
    "numbers": lambda y, t: F.binary_cross_entropy(y.sigmoid(), t.sigmoid(), weight=t.exp()),
    "signs": lambda y, t: F.soft_margin_loss(y, t.sign()),
    "sum": lambda y, t: F.mse_loss(y, t, reduction="sum") / y.numel(),
    "each": lambda y, t: F.huber_loss(y, t, reduction="none").mean(),
    "weights": lambda y, t: F.mse_loss(y, t, weight=t.exp()),
}


@pytest.mark.parametrize("of", ({"tensor": 2, "sequence": True}, {"data": 2, "context": 2}))
def test_means_over_tokens(of: dict[str, Any]) -> None:
    """That processes share out; the update is as large as its gradient."""

    def make(name: str) -> models.Example:
        torch.manual_seed(0)
        model, _, batch, _ = example(Net(), None)
        return model, lambda m, b: MEANS[name](m(b[0]), b[1]), batch, torch.optim.SGD(model.parameters(), lr=0.1)

    def work() -> dict[str, float]:
        found = {}
        for name in MEANS:
            model, loss, batch, optimizer = make(name)
            want = check.Reference(model, loss, optimizer).run(batch, 2, torch.device("cpu"))
            t = distribute(model, loss, optimizer, strategy(NET, **of), device="cpu")
            got = [t.step(batch) for _ in range(2)]
            state = t.state_dict()
            if dist.get_rank() == 0:
                found[name] = max(check.of_numbers(got, want.losses), check.of_states(state, want.state))
        return found

    assert {name: off for name, off in strategies.in_processes(2, work).items() if off > CLOSE} == {}


def penalised_at(make: Any, path: str) -> Any:
    """What make returns, with a penalty of the gradients of what a module makes."""

    def loss(m: Any, b: Any) -> torch.Tensor:
        seen: list[torch.Tensor] = []
        hook = m.get_submodule(path).register_forward_hook(lambda m, given, y: seen.append(y))
        y = m(b[0])
        hook.remove()
        (g,) = torch.autograd.grad(y.square().sum(), seen, create_graph=True)
        return F.cross_entropy(y.flatten(0, -2), b[1].flatten()) + 1e-3 * g.square().mean()

    def made() -> models.Example:
        model, _, batch, optimizer = make()
        return model, loss, batch, optimizer

    return made


def test_gradients_of_gradients_of_parts() -> None:
    """Queries, keys and values of one layer, by the gradients of embeddings."""
    sizes = [strategies.SIZE["width"]] * 3
    of = {f"h.{k}.attn.c_attn": sizes for k in strategies.LAYERS}
    gpt2 = KINDS["gpt2"]
    for got in strategies.run(penalised_at(gpt2.make, "wte"), [strategy(gpt2, tensor=2), strategy(gpt2, tensor=2, parts=of)]):
        assert got.loss < CLOSE and got.state < CLOSE, got


def test_gradients_of_gradients_of_experts() -> None:
    layers = {"layers": [["layers.0"], ["layers.1"]], "experts": ["layers.0.experts", "layers.1.experts"]}
    docs = [strategy(NET, s, 2, expert_ranks=2, **layers) for s in ("ddp", "zero-3")]
    for got in strategies.run(penalised_at(mixtures.blocks, "layers.0.norm"), docs):
        assert got.loss < CLOSE and got.state < CLOSE, got


def test_gradients_of_gradients_of_tokens() -> None:
    trained(penalised, {"data": 2, "context": 2})


def test_means_of_a_traced_model() -> None:
    """As the last stage of a pipeline computes them."""

    def make() -> models.Example:
        torch.manual_seed(0)
        model, _, batch, _ = example(Net(), None)
        batch = tuple(torch.cat([x, x]) for x in batch)
        return model, lambda m, b: F.mse_loss(m(b[0]), b[1]), batch, torch.optim.SGD(model.parameters(), lr=0.1)

    products = {"columns": [f"layers.{k}.up" for k in range(2)], "rows": [f"layers.{k}.down" for k in range(2)]}
    s = pipelines.strategy("gpipe", [["inner", "layers.0"], ["layers.1", "out"]], micro_batches=2, tensor=2, sequence=True, layers=[["layers.0"], ["layers.1"]], **products)
    got, want = pipelines.run(make, s), pipelines.plain(make, s)
    assert max(check.of_numbers(got.losses, want.losses), check.of_states(got.state, want.state)) < CLOSE
