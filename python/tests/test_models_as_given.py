"""Models as people have them: wrapped, with outputs that are no tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn as nn
from placer_torch import CaptureError, Loop, capture, load, run, schedule


class Returns(nn.Module):
    def __init__(self, also: Any) -> None:
        super().__init__()
        self.linear, self.also = nn.Linear(4, 4), also

    def forward(self, x: torch.Tensor) -> Any:
        return self.also(self.linear(x))


@pytest.mark.parametrize(
    "also",
    [lambda y: (y, None), lambda y: {"logits": y, "loss": None, "n": 3, "more": [True, 2.5, "text", y * 2]}, lambda y: (0, [1, y, -2])],
    ids=["none", "dict", "numbers"],
)
def test_outputs_that_are_no_tensors(also: Any, tmp_path: Any) -> None:
    """They come back where they were."""
    model = Returns(also)
    capture(model, None, torch.ones(2, 4)).save(str(tmp_path / "program.pt"))
    p = load(str(tmp_path / "program.pt"))
    x = torch.randn(2, 4)
    with torch.no_grad(), Loop(p, schedule.single(schedule.ops(p)), model, workers=False) as loop:
        got, want = loop.step(x), model(x)
    assert repr(got) == repr(want)


@pytest.mark.parametrize("also", [lambda y: 3, lambda y: (y, object())], ids=["number", "object"])
def test_other_outputs_are_refused(also: Any) -> None:
    with pytest.raises(CaptureError, match="the model returns a value of type"):
        capture(Returns(also), None, torch.ones(2, 4))


class Compiled(nn.Module):
    """As torch.compile wraps: the model's own parameters under another name."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._orig_mod = model


@pytest.mark.parametrize("wrap", [torch.compile, nn.DataParallel, lambda m: nn.DataParallel(Compiled(m))], ids=["compile", "parallel", "both"])
def test_wrapped(wrap: Any) -> None:
    """The step is that of the model within; the loop's state loads into wrapper and model."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    wrapped = wrap(model)
    p = capture(wrapped, lambda m, b: m(b).square().sum(), torch.ones(2, 4), torch.optim.SGD(wrapped.parameters(), lr=0.1))
    assert p.name == "sequential" and "update.0.weight" in p.by_name
    with run(p, schedule.single(schedule.ops(p)), wrapped, workers=False) as loop:
        before = wrapped.state_dict()
        loop.step()
        got = loop.state_dict()
        assert got.keys() == before.keys() and not any(torch.equal(v, before[k]) for k, v in got.items())
        loop.load_state_dict(before)
        assert all(torch.equal(v, before[k]) for k, v in loop.state_dict().items())
        loop.load_state_dict({k: v + 1 for k, v in model.state_dict().items()})
    wrapped.load_state_dict(got)
    assert all(torch.equal(v, got[k]) for k, v in wrapped.state_dict().items())


class Prepared(torch.optim.Optimizer):
    """As accelerate's AcceleratedOptimizer has the optimizer."""

    __module__ = "accelerate.optimizer"

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def param_groups(self) -> Any:
        return self.optimizer.param_groups


class Lookahead(Prepared):
    """Its steps are not those of the optimizer within."""

    __module__ = "mine"


def test_wrapped_optimizers() -> None:
    model = nn.Linear(4, 4)
    own = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    p = capture(model, lambda m, b: m(b).square().sum(), torch.ones(2, 4), Prepared(own))
    assert p.ops[p.by_name["update.weight"]].args[3]["momentum"] == 0.9
    with run(p, schedule.single(schedule.ops(p)), model, workers=False, optimizer=Prepared(own)) as loop:
        loop.step()
        loop.follow(Prepared(own))
    with pytest.raises(CaptureError, match="optimizer mine.Lookahead is not captured"):
        capture(model, lambda m, b: m(b).square().sum(), torch.ones(2, 4), Lookahead(own))
