"""Experts shared out among replicas, in processes over gloo, beside plain torch."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, Callable

import pytest
import torch
import torch.distributed as dist
from torch import nn

import mixtures
import models
import releases
import strategies
from placer_torch.clipping import Clip
from placer_torch.parallel import distribute, experts_check, micro, refusals
from placer_torch.parallel import strategy as files
from placer_torch.parallel.errors import StrategyError

forks = pytest.mark.forks

LAYERS = [f"layers.{k}" for k in range(mixtures.LAYERS)]


def doc(data: int, ranks: int, sharding: str = "ddp", mb: int = 1, recompute: bool = False, **more: Any) -> dict[str, Any]:
    text = f"{sharding}={data} ep={ranks} mb={mb}" + " recompute" * recompute
    of = {"format": "placer strategy 1", "graph": "g", "strategy": text, "batch": 8, "data": data, "tensor": 1, "sharding": sharding, "micro_batches": mb, "recompute": "layers" if recompute else "nothing"}
    return of | {"layers": [[x] for x in LAYERS], "expert_ranks": ranks, "experts": [f"{x}.experts" for x in LAYERS]} | more


SHARDINGS = ("ddp", "zero-1", "zero-2", "zero-3")


@forks
@pytest.mark.parametrize(("make", "close"), [pytest.param(mixtures.blocks, 1e-8, id="blocks"), pytest.param(mixtures.chosen, 1e-4, id="chosen", marks=releases.grouped)])
@pytest.mark.parametrize(("data", "ranks"), [(2, 2), (4, 2), (4, 4)])
def test_experts_train_as_one(make: Callable[[], models.Example], close: float, data: int, ranks: int) -> None:
    """Losses, weights and norms of gradients, of whole batches and of micro-batches that are computed
    again."""
    more: list[dict[str, Any]] = [{}, {"mb": 2, "recompute": True}]
    docs = [doc(data, ranks, s, **x) for s in SHARDINGS for x in more]
    for d, got in zip(docs, strategies.run(make, docs, clip=Clip(0.5)), strict=True):
        assert got.loss < close and got.state < close and got.norm < close, (d["strategy"], got)


def fused() -> models.Example:
    model, loss, batch, _ = mixtures.blocks()
    return model, loss, batch, torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)


@forks
def test_fused_updates() -> None:
    """Of shared experts beside shares of other parameters."""
    for data, ranks in ((2, 2), (4, 2)):
        for got in strategies.run(fused, [doc(data, ranks, s) for s in SHARDINGS[1:]]):
            assert got.loss < 1e-8 and got.state < 1e-8


def one_for_all() -> models.Example:
    """A router that sends every row to the last two experts, so that a process has none."""
    model, loss, batch, optimizer = mixtures.chosen()
    for layer in model.layers:
        layer.router.register_forward_hook(lambda m, given, scores: scores * 0 + torch.arange(4.0))
    return model, loss, batch, optimizer


@forks
@releases.grouped
def test_a_process_without_rows() -> None:
    """Its weights decay as those of plain torch do, and it sends gradients back with the others."""
    for got in strategies.run(one_for_all, [doc(4, 4), doc(4, 4, "zero-3", 2, True)]):
        assert got.loss < 1e-4 and got.state < 1e-4


@forks
def test_states_are_of_any_strategy(tmp_path: Any) -> None:
    """A state of shared experts goes on in whole ones, and the other way round."""
    file = tmp_path / "state.pt"

    def work() -> list[float]:
        model, loss, batch, optimizer = mixtures.blocks()
        found = []
        for first, second in ((doc(2, 2, "zero-3"), doc(2, 1, experts=[])), (doc(2, 1, "zero-1", experts=[]), doc(2, 2))):
            (m, o), (n, p) = copy.deepcopy((model, optimizer)), copy.deepcopy((model, optimizer))
            a = distribute(m, loss, o, first, device="cpu")
            own = micro.part(batch, a.replica, 2)
            a.step(own)
            state = a.state_dict(), a.optimizer_state()
            if dist.get_rank() == 0:
                assert state[0].keys() == model.state_dict().keys()
                assert state[0]["layers.0.experts.up"].shape == model.layers[0].experts.up.shape
                torch.save(state, file)
            dist.barrier()
            b = distribute(n, loss, p, second, device="cpu")
            b.load_state_dict(*torch.load(file))
            for _ in range(2):
                found.append(abs(b.step(own) / a.step(own) - 1))
        return found

    assert max(strategies.in_processes(2, work)) < 1e-12


class Sums(mixtures.Chosen):
    """Whose experts see each other's rows."""

    def forward(self, rows: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return super().forward(rows, experts, weights) + rows.sum(0)


class Counted(mixtures.Chosen):
    """Whose code says how many experts there are."""

    def forward(self, rows: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return super().forward(rows, experts, weights) + self.up[3].sum() * 0


class Slotted(mixtures.Chosen):
    def forward(self, rows: torch.Tensor, experts: torch.Tensor) -> torch.Tensor:
        return super().forward(rows, experts, torch.ones_like(experts))


class Gained(mixtures.Blocks):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(mixtures.EXPERTS))


class Kept(mixtures.Blocks):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(mixtures.EXPERTS))


class Wide(mixtures.Blocks):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.zeros(3, mixtures.HIDDEN, mixtures.WIDTH))


@releases.grouped
@pytest.mark.parametrize(
    ("experts", "want"),
    [
        (Sums, "makes other results of its experts' parts than of all 4 together"),
        (Counted, "does not run on rows of 16 with 2 of its 4 experts: index 3 is out of bounds"),
        (Slotted, "is called neither with rows"),
        (Gained, "has parameter gain of one dimension"),
        (Kept, "has buffer seen"),
        (Wide, "has parameters of [4, 16, 24], [3, 24, 16]"),
    ],
)
def test_experts_that_are_not_shared_out(experts: type[nn.Module], want: str) -> None:
    model, _, _, _ = mixtures.chosen()
    model.layers[1].experts = experts()
    with pytest.raises(StrategyError, match="module layers.1.experts") as e:
        refusals.check(model, torch.optim.SGD(model.parameters()), files.read(doc(2, 2)))
    assert want in str(e.value)


@releases.grouped
@pytest.mark.parametrize("make", [mixtures.blocks, mixtures.chosen])
def test_experts_that_are_shared_out(make: Callable[[], models.Example]) -> None:
    """And are as they were afterwards."""
    model = make()[0]
    experts, before = model.layers[0].experts, dict(vars(model.layers[0].experts))
    for ranks in (2, 4):
        assert not experts_check.refused(experts, files.read(doc(4, ranks)))
    assert vars(experts) == before and experts.training and isinstance(experts.up, nn.Parameter)


@releases.grouped
def test_refusals() -> None:
    model, _, _, optimizer = mixtures.chosen()
    adam = lambda **o: torch.optim.AdamW(model.parameters(), **o)  # noqa: E731
    s = files.read(doc(2, 2))
    for of, o, want in (
        (dataclasses.replace(s, tensor=2), optimizer, "take a strategy without tp"),
        (dataclasses.replace(s, data=3, expert_ranks=3), optimizer, "has 4 experts, which 3 replicas cannot share out evenly"),
        (dataclasses.replace(s, experts=("layers.7",)), optimizer, "experts: the model has no module 'layers.7'"),
        (dataclasses.replace(s, experts=("layers.0",)), optimizer, "module layers.0 has parameter norm.weight of one dimension"),
        (s, torch.optim.Adafactor(model.parameters()), "optimizer Adafactor"),
        (s, adam(fused=True), "fused=True"),
        (s, adam(foreach=True), "foreach=True"),
    ):
        with pytest.raises(StrategyError, match=None) as e:
            refusals.check(model, o, of)
        assert want in str(e.value)
    refusals.check(model, adam(fused=True), dataclasses.replace(s, sharding="zero-1"))
    model.layers[1].experts.up = model.layers[0].experts.up
    with pytest.raises(StrategyError, match="has a parameter of another module too"):
        refusals.check(model, adam(), s)
