"""How a model is cut into stages, and what cannot be (placer_torch.parallel)."""

from __future__ import annotations

from typing import Any

import pytest
import releases
import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

from placer_torch.errors import PlacerTorchError
from placer_torch.parallel.pipeline_cut import Cut
from placer_torch.parallel.pipeline_stage import Stage
from placer_torch.parallel.pipeline_trace import trace

pytestmark = releases.stages

CPU = torch.device("cpu")


def gradients(model: nn.Module, loss: torch.Tensor) -> list[torch.Tensor | None]:
    return list(torch.autograd.grad(loss, [p for p in model.parameters() if p.requires_grad], allow_unused=True))


def stages(model: nn.Module, loss: Any, batch: torch.Tensor, paths: list[list[str]], **how: Any) -> torch.Tensor:
    """The loss by the stages one behind the other, on one process."""
    cut = Cut(trace(model, loss, batch, CPU), model, paths)
    given: tuple[torch.Tensor, ...] = ()
    for k in range(cut.count):
        stage = Stage(cut, k, cut.trace.state, how.get("layers", ()))
        for path in stage.layers():
            setattr(stage.segments, path.removeprefix("segments."), checkpoint_wrapper(stage.get_submodule(path)))
        stage.feed([[batch]])
        given = stage(*given)
    return given[0]


class Regions(nn.Module):
    """no_grad within autocast and autocast within no_grad, over two stages."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y = self.a(x) * 2
            with torch.autocast("cpu", dtype=torch.float16):
                y = self.c(y)
        return self.b(self.a(x).relu()) + y


class InPlace(nn.Module):
    """The second stage changes what the first made, writes into rows of what it made itself,
    and reads a mask that is made in place of the batch alone."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.zeros(8)
        mask[2:5] = 1
        y = self.a(x) * mask
        y += 1
        out = torch.zeros(x.shape)
        out[1:] = self.b(y)[1:]
        y.mul_(mask)
        return out + y + mask


@pytest.mark.parametrize("make, how", [(Regions, {}), (Regions, {"layers": [["a"], ["b"]]}), (InPlace, {})])
def test_stages_are_the_model(make: Any, how: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model, x = make(), torch.randn(4, 8)

    def loss(m: Any, batch: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return m(batch).float().pow(2).mean()

    want = loss(model, x)
    got = stages(model, loss, x, [["a"], ["b"]], **how)
    assert float(got.detach()) == float(want.detach())
    for a, b in zip(gradients(model, want), gradients(model, got)):
        assert a is not None and b is not None
        torch.testing.assert_close(a, b)


class Angles(nn.Module):
    """Made of the batch and a buffer before the layers, and read by both, as rotary angles are."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
        self.register_buffer("frequency", torch.rand(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angles = (x.abs().sum(-1, keepdim=True) * self.frequency).cos()
        return self.b(self.a(x) * angles) * angles


def test_what_depends_on_the_batch_alone_does_not_cross() -> None:
    model, x = Angles(), torch.randn(4, 8)
    cut = Cut(trace(model, lambda m, b: m(b).mean(), x, CPU), model, [["a"], ["b"]])
    assert [[n.target for n in of] for of in cut.crossing] == [[torch.ops.aten.mul.Tensor]]


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0]


class Of(nn.Module):
    """Two products with f between them, in a module of its own."""

    def __init__(self, f: Any):
        super().__init__()
        self.a, self.f, self.b = nn.Linear(8, 8), f, nn.Linear(8, 8)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.f(self.a(x)))


class Does(nn.Module):
    def __init__(self, does: Any):
        super().__init__()
        self.does = does

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.does(x)


def hooked(x: torch.Tensor) -> torch.Tensor:
    x.register_hook(lambda g: 2 * g)
    return x * 2


def branch(x: torch.Tensor) -> torch.Tensor:
    return x if x.sum() > 0 else -x


def either(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))


class Counts(nn.Module):
    """Both products change one buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
        self.register_buffer("seen", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(x)
        with torch.no_grad():
            self.seen += y.mean(0)
        z = self.b(y)
        with torch.no_grad():
            self.seen += z.mean(0)
        return z


def with_backward_hook() -> nn.Module:
    m = Of(nn.Tanh())
    m.f.register_full_backward_hook(lambda *_: None)
    return m


AB = [["a"], ["b"]]
REFUSED: dict[str, tuple[Any, list[list[str]], str]] = {
    "order": (lambda: Of(nn.Tanh()), [["b"], ["a"]], "module b cannot be in stage 0: it reads what module f of stage 1 makes"),
    "unknown": (lambda: Of(nn.Tanh()), [["a"], ["c"]], "stage 1 has module c, which the model does not"),
    "twice": (lambda: Of(nn.Tanh()), [["a"], ["a", "b"]], "module a is in stages 0 and 1"),
    "nothing": (lambda: Of(nn.Identity()), [["a"], ["f"], ["b"]], r"stage 1 \(f\) has nothing to run"),
    "no modules": (lambda: Of(nn.Tanh()), [["a"], [], ["b"]], r"stage 1 \(\) has nothing to run: it has no modules"),
    "nothing behind": (lambda: Of(nn.Tanh()), [["a"], ["b"], [], []], "stage 2 .* it has no modules"),
    "function": (lambda: Of(Does(Rounded.apply)), AB, "module f cannot be cut into stages: it runs an autograd.Function with a backward of its own, Rounded,"),
    "hook": (lambda: Of(Does(hooked)), AB, "module f cannot be cut into stages: it registers a hook"),
    "backward hook": (with_backward_hook, AB, "module f has a backward hook"),
    "branch": (lambda: Of(Does(branch)), AB, r"module f cannot be cut into stages \(.*test_pipeline_cut.py:\d+\): .*a number or a shape out of a tensor's values"),
    "shape": (lambda: Of(Does(lambda x: x[x > 0].sum() + x)), AB, "module f cannot be cut into stages: op aten.index.Tensor makes a number or a shape"),
    "code within": (lambda: Of(Does(either)), AB, "module f cannot be cut into stages: it runs an autograd.Function .* CondAutogradOp,"),
    "buffer": (Counts, AB, "buffer seen is changed, and stages 0, 1 use it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name: str) -> None:
    make, paths, why = REFUSED[name]
    model = make()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    with pytest.raises(PlacerTorchError, match=why):
        stages(model, lambda m, x: m(x).mean(), torch.randn(4, 8), paths)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert torch.Tensor.register_hook.__name__ == "register_hook"
