"""Statistics that a pass leaves in buffers, as batch norm's, in processes over gloo."""

from __future__ import annotations

import copy
import math

import pytest
import torch
import torch.distributed as dist
from torch import nn

import models
import strategies
from placer_torch.parallel import check, distribute, micro
from placer_torch.parallel.strategy import read

pytestmark = pytest.mark.forks

DOC = {"format": "placer strategy 1", "graph": "g", "strategy": "", "batch": 16, "data": 2, "micro_batches": 2, "layers": [["blocks.0"], ["blocks.1"]]}


class Normed(nn.Module):
    """Blocks with batch norms, one of them in a container that is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), nn.ModuleDict({"linear": nn.Linear(4, 4), "norm": nn.BatchNorm1d(4)})])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.blocks[0](x).relu()
        return self.blocks[1]["norm"](self.blocks[1]["linear"](x))


def make() -> models.Example:
    torch.manual_seed(0)
    model = Normed().double()
    batch = (torch.randn(16, 4, dtype=torch.float64), torch.randint(0, 4, (16,)))
    return model, models.cross_entropy, batch, torch.optim.SGD(model.parameters(), lr=0.1)


@pytest.mark.parametrize("sharding, layers, recompute", [("ddp", 2, "nothing"), ("zero-3", 2, "nothing"), ("zero-1", 1, "layers"), ("zero-3", 1, "layers")])
def test_statistics_are_those_of_micro_batches(sharding: str, layers: int, recompute: str) -> None:
    """Of replica 0, each micro-batch's once, computed again or not."""
    s = read({**DOC, "sharding": sharding, "recompute": recompute, "layers": DOC["layers"][:layers]})

    def work() -> tuple[float, float]:
        model, loss, batch, optimizer = make()
        plain = check.Reference(model, loss, optimizer)
        training = distribute(*copy.deepcopy((model, loss, optimizer)), s, device="cpu")
        losses = [training.step(micro.part(batch, training.replica, 2)) for _ in range(3)]
        state = training.state_dict()
        if dist.get_rank():
            return 0.0, 0.0
        assert "blocks.0.1.running_mean" in plain.changed(batch, torch.device("cpu"))
        want = plain.run_parts(batch, 3, torch.device("cpu"), s)
        assert state["blocks.0.1.num_batches_tracked"] == want.state["blocks.0.1.num_batches_tracked"] == 6
        return check.of_numbers(losses, want.losses), check.of_states(state, want.state)

    assert max(strategies.in_processes(2, work)) < 1e-10


def test_rounding_is_no_measure() -> None:
    """A tensor that is zero but for rounding, beside one that is not."""
    want = {"a": torch.ones(2), "b": torch.tensor([1e-9])}
    assert check.of_states({"a": torch.ones(2), "b": torch.tensor([-1e-9])}, want) < 1e-4
    assert check.of_states({"a": torch.ones(2), "b": torch.tensor([0.1])}, {**want, "b": torch.tensor([0.2])}) == pytest.approx(0.5)
    assert math.isnan(check.of_states({"a": torch.zeros(2), "b": torch.tensor([math.nan])}, want))
    assert math.isnan(check.of_numbers([2.0, math.nan], [1.0, 1.0]))
