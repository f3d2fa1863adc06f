"""Numbers that the code takes out of tensors: those that are known while a step is traced are part of it, others are refused."""

from __future__ import annotations

import copy
from typing import Any, Callable

import pytest
import torch
import torch.nn as nn
from placer_torch import CaptureError, capture, run, schedule


class Scaled(nn.Module):
    """A linear layer times a number that the code takes from somewhere."""

    def __init__(self, number: Callable[[Any], float]) -> None:
        super().__init__()
        self.linear, self.number, self.plain = nn.Linear(4, 3), number, torch.full((4,), 0.5)
        self.register_buffer("mask", torch.tensor([1.0, 2.0, 4.0]))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.number(self)


def square(m: Any, b: torch.Tensor) -> torch.Tensor:
    return m(b).square().mean()


def views(m: Any) -> float:
    made = torch.zeros(4, 4)
    made[0].fill_(2.0)
    made.view(-1).add_(1)
    return float(made.sum())


def of_a_constant(m: Any) -> float:
    return float((m.plain * 3).max())


def beside_a_written_one(m: Any) -> float:
    out = torch.zeros(2, 4)
    out[0] = m.linear.weight[0].detach()
    m.steps.add_(out[0].sum().long())
    return float(m.plain[0]) + float(m.mask[1])


@pytest.mark.parametrize(
    "number",
    [
        views,
        of_a_constant,
        beside_a_written_one,
        lambda m: float(m.mask.sum()),
        lambda m: 2.0 if torch.equal(m.mask.cumsum(0), torch.tensor([1.0, 3.0, 7.0])) else 3.0,
        lambda m: m.plain.sum().item(),
        lambda m: torch.tensor([2.0, 3.0])[1].item(),
        lambda m: 5.0 if torch.arange(6).remainder(2).bool().any() else 6.0,
    ],
)
def test_known_numbers(number: Any) -> None:
    """Three steps have the losses of plain torch, and the tensors that the code holds stay."""
    m, b = Scaled(number), torch.randn(5, 4)
    plain, kept = copy.deepcopy(m), m.plain.clone()
    o, own = (torch.optim.SGD(x.parameters(), lr=0.1) for x in (m, plain))
    p = capture(m, square, b, o)
    assert torch.equal(m.plain, kept)
    with run(p, schedule.single(schedule.ops(p)), m, workers=False) as loop:
        for _ in range(3):
            own.zero_grad()
            want = square(plain, b)
            want.backward()
            own.step()
            assert loop.step(b) == pytest.approx(want.item(), rel=1e-6)


class Filled(nn.Module):
    """Asks whether a mask that is made like the batch lets anything through."""

    def __init__(self, mask: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.linear, self.mask = nn.Linear(4, 3), mask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = self.mask(x)
        return self.linear(x) if mask.bool().all() else self.linear(x) * 0.5 if not mask.any() else self.linear(x * mask)


@pytest.mark.parametrize(
    "mask",
    [
        torch.ones_like,
        lambda x: torch.zeros_like(x, dtype=torch.bool),
        lambda x: x.new_ones(x.shape[0], 1) > 0,
        lambda x: x.new_zeros((4,)),
        lambda x: x.new_full((2, 4), 3.0).sum(0),
        lambda x: torch.full_like(x, 2.0) - torch.arange(4),
    ],
)
def test_tensors_filled_by_one_number(mask: Any) -> None:
    """Of the batch they have the shape alone, so that their values are known."""
    m, b = Filled(mask), torch.randn(5, 4)
    p = capture(m, square, b)
    with run(p, schedule.single(schedule.ops(p)), m, workers=False) as loop:
        assert loop.step(b) == pytest.approx(square(m, b).item(), rel=1e-6)


def changed_by_the_batch(x: torch.Tensor) -> torch.Tensor:
    made = torch.zeros_like(x)
    made[0].add_(x[0])
    return made


@pytest.mark.parametrize("mask", [changed_by_the_batch, torch.rand_like, torch.empty_like, lambda x: torch.ones_like(x) * x])
def test_tensors_of_the_batch(mask: Any) -> None:
    with pytest.raises(CaptureError, match="takes a number out of a tensor"):
        capture(Filled(mask), square, torch.randn(5, 4))


def changed_by_a_weight(m: Any) -> float:
    made = torch.zeros(4)
    made[1:].add_(m.linear.weight.sum())
    return float(made.sum())


def a_view_of_what_a_weight_changes(m: Any) -> float:
    made = torch.zeros(4)
    part = made.view(2, 2)[1]
    made.add_(m.linear.weight.sum().detach())
    return float(part.sum())


def counted(m: Any) -> float:
    m.steps += 1
    return 2.0 if int(m.steps) % 2 else 1.0


def counted_through_a_view(m: Any) -> float:
    made = torch.zeros(())
    made.view(1).add_(m.steps)
    m.steps += 1
    return float(made) + 1


@pytest.mark.parametrize("number", [lambda m: float(m.linear.weight.sum()), lambda m: float(torch.rand(1)), changed_by_a_weight, a_view_of_what_a_weight_changes])
def test_unknown_numbers(number: Any) -> None:
    with pytest.raises(CaptureError, match="takes a number out of a tensor"):
        capture(Scaled(number), square, torch.randn(5, 4))


@pytest.mark.parametrize("number", [counted, counted_through_a_view])
def test_numbers_that_change(number: Any) -> None:
    with pytest.raises(CaptureError, match="takes a number out of buffer steps .*which the step changes"):
        capture(Scaled(number), square, torch.randn(5, 4))


def test_buffers_without_values() -> None:
    with pytest.raises(CaptureError, match="takes a number out of a tensor"):
        capture(Scaled(lambda m: float(m.mask.sum())).to("meta"), square, torch.randn(5, 4))


class Encoder(nn.Module):
    """torch's own encoder under a causal mask, of which it asks whether it is one."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(x, mask=self.mask)


def test_causal_masks() -> None:
    m, b = Encoder(), torch.randn(3, 6, 8)
    p = capture(m, square, b)
    with run(p, schedule.single(schedule.ops(p)), m, workers=False) as loop:
        assert loop.step(b) == pytest.approx(square(m, b).item(), rel=1e-6)
