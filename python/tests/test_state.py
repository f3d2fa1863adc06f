"""State that a step rebinds, returns or does not hold."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from placer_torch import CaptureError, FormatError, Loop, capture, graph, schedule
from test_run import scattered


class Remembers(torch.nn.Module):
    """Keeps the last step's mean, a copy of its weight from before the update, and swaps two buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.arange(4.0) + 1)
        for k, name in enumerate(("cur", "prev", "teacher", "a", "b")):
            self.register_buffer(name, torch.full((4,), float(k)))
        self.register_buffer("square", torch.arange(4.0).view(2, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.prev = self.cur
        self.cur = x.mean(0)
        self.teacher = self.w.detach()
        self.a, self.b = self.b, self.a
        self.square = self.square.t()
        return (x * self.w + self.prev).square().sum()


def test_buffers_bound_to_other_state() -> None:
    """A buffer that is given another buffer or a parameter has its value from before this
    step's assignments and updates, as in the model itself, on any devices and in any order."""
    torch.manual_seed(0)
    model = Remembers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [torch.randn(3, 4) for _ in range(3)]
    p = capture(model, lambda m, b: m(b), batches[0], optimizer)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    late = graph.update_control(p)
    assert all(any(p.ops[j].target == "aten.clone.default" for j in late[p.by_name[k]]) for k in ("update.w", "assign.cur", "assign.a", "assign.b"))
    runs = [Loop(p, s, model, workers=False) for s in (schedule.single(schedule.ops(p)), *(scattered(p, 0.7, seed=k) for k in range(4)))]
    for x in batches:
        optimizer.zero_grad()
        want = model(x)
        want.backward()
        # the step's teacher is of before the update, the model's own shares the memory of w
        teacher = model.w.detach().clone()
        optimizer.step()
        state = {**model.state_dict(), "teacher": teacher}
        model.teacher = teacher
        for loop in runs:
            assert loop.step(x) == want.item()
            assert all(torch.equal(v, state[k]) for k, v in loop.state_dict().items()), [k for k, v in loop.state_dict().items() if not torch.equal(v, state[k])]
    assert set(before) == set(state)


class Counts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("n", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        n = self.n
        self.n = n + x
        return x * 2, n.view(1, 2)


def test_output_that_is_overwritten() -> None:
    """What a step returns of a buffer is its value before the assignment."""
    model = Counts()
    p = capture(model, None, torch.ones(2))
    assert torch.equal(model.n, torch.zeros(2))
    with Loop(p, schedule.single(schedule.ops(p)), model, workers=False) as loop:
        for k in range(3):
            assert torch.equal(loop.step(torch.ones(2))[1], torch.full((1, 2), float(k)))


class Grows(torch.nn.Module):
    def __init__(self, to: Any) -> None:
        super().__init__()
        self.to_, self.w = to, torch.nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen = self.to_(x)
        return (x * self.w).sum()


@pytest.mark.parametrize(("to", "says"), [(lambda x: torch.cat([x, x]), r"buffer seen is given shape \[4\] in place of \[2\]"), (lambda x: None, "buffer seen is given no tensor")])
def test_buffers_that_change_shape(to: Any, says: str) -> None:
    with pytest.raises(CaptureError, match=says):
        capture(Grows(to), lambda m, b: m(b), torch.ones(2))


def test_models_that_are_others() -> None:
    """Another width, another type, and a parameter more: each was copied, or left out, without a word."""
    make = lambda n: torch.nn.Sequential(torch.nn.Linear(4, n))  # noqa: E731
    p = capture(make(3), lambda m, b: m(b).sum(), torch.ones(2, 4))
    one = schedule.single(schedule.ops(p))
    more = make(3)
    more.append(torch.nn.Linear(3, 3))
    for model, says in (
        (make(1), r"parameter 0.weight is \[1, 4\] torch.float32, captured as \[3, 4\] torch.float32: capture the model"),
        (make(3).double(), "parameter 0.weight is .*float64, captured as .*float32"),
        (more, "the model has parameter 1.weight, which the step does not"),
    ):
        with pytest.raises(FormatError, match=says):
            Loop(p, one, model)
