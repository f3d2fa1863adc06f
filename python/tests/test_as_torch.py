"""What models do beyond layers and products, a captured step and plain torch beside each other, step by step."""

from __future__ import annotations

import copy
from typing import Any, Callable

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from placer_torch import Loop, capture, codegen, load, schedule
from test_run import Tied, scattered
from torch.utils.checkpoint import checkpoint

Loss = Callable[[Any, Any], torch.Tensor]


def sgd(m: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01, foreach=False)


def adamw(m: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(m.parameters(), lr=0.01, foreach=False)


def agree(model: nn.Module, loss: Loss, batches: list[Any], make: Callable[[nn.Module], torch.optim.Optimizer] = sgd, *, workers: bool = False, before: Callable[[Any, int], None] = lambda p, t: None, clip_norm: float | None = None) -> None:
    """Losses and state of a step on one device and on two are those of loss, backward and
    the optimizer's own step, for every batch; the capture leaves the model as it was.
    before: called with program and step before torch's own. clip_norm: of all gradients."""
    optimizer = make(model)
    was = copy.deepcopy(model.state_dict())
    p = capture(model, loss, batches[0], optimizer, clip_norm=clip_norm)
    torch.testing.assert_close(dict(model.state_dict()), dict(was), rtol=0, atol=0)
    assert not [k for m in model.modules() for k, v in vars(m).items() if isinstance(v, torch.Tensor) and type(v) is not torch.Tensor]
    with Loop(p, schedule.single(schedule.ops(p)), model, workers=False) as one, Loop(p, scattered(p, 0.6), model, workers=workers) as two:
        for t, b in enumerate(batches, 1):
            before(p, t)
            optimizer.zero_grad()
            want = loss(model, b)
            want.backward()
            norm = None if clip_norm is None else torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm, foreach=False)
            optimizer.step()
            for loop in one, two:
                torch.testing.assert_close(loop.step(b), want.item(), rtol=1e-6, atol=1e-6)
                if norm is not None:
                    torch.testing.assert_close(loop.grad_norm(), norm.item(), rtol=1e-5, atol=1e-6)
                torch.testing.assert_close(dict(loop.state_dict()), dict(model.state_dict()))


def squares(m: Any, b: Any) -> torch.Tensor:
    return m(b).square().mean()


def drawn(*shape: int, n: int = 4) -> list[torch.Tensor]:
    g = torch.Generator().manual_seed(7)
    return [torch.randn(shape, generator=g) for _ in range(n)]


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("workers", [False, True])
def test_batch_norm(workers: bool) -> None:
    """One that trains, one that is frozen, one without statistics."""
    m = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 8), nn.BatchNorm1d(8), nn.BatchNorm1d(8, track_running_stats=False))
    m[4].eval()
    agree(m, squares, drawn(5, 6), workers=workers)


def test_modes_are_the_captures() -> None:
    """A model in eval mode is captured in it, dropout and statistics included."""
    m = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5)).eval()
    agree(m, squares, drawn(5, 6))
    p = capture(m, None, drawn(5, 6)[0])
    m.train()
    with Loop(p, schedule.single(schedule.ops(p)), m, workers=False) as loop, torch.no_grad():
        for x in drawn(5, 6):
            assert torch.equal(loop.step(x), m.eval()(x))


def test_tied_weights_by_adamw() -> None:
    ids = [(torch.randint(0, 12, (6,)), torch.randint(0, 12, (6,))) for _ in range(4)]
    agree(Tied(), lambda m, b: F.cross_entropy(m(b[0]), b[1]), ids, adamw)


class Normalised(nn.Module):
    """Batch normalisation over time steps: on the CPU it returns other strides than fake tensors foresee."""

    def __init__(self, then: Callable[[torch.Tensor], torch.Tensor]):
        super().__init__()
        self.project, self.norm, self.then = nn.Linear(8, 8), nn.BatchNorm1d(8), then

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.then(self.norm(self.project(x).transpose(1, 2)).transpose(1, 2))


def windows(y: torch.Tensor) -> torch.Tensor:
    a, b, c = y.stride()
    return y.as_strided((y.shape[0], y.shape[1] - 1, 2, y.shape[2]), (a, b, b, c))


@pytest.mark.parametrize("workers", [False, True])
@pytest.mark.parametrize("then", [lambda y: F.linear(y, torch.ones(3, 8)), lambda y: y.contiguous().view(-1), lambda y: y.reshape(-1, 16), windows])
def test_strides_that_kernels_choose(then: Callable[[torch.Tensor], torch.Tensor], workers: bool) -> None:
    agree(Normalised(then), squares, drawn(2, 4, 8), workers=workers)


def test_channels_last() -> None:
    m = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3), nn.Flatten()).to(memory_format=torch.channels_last)
    agree(m, squares, [x.to(memory_format=torch.channels_last) for x in drawn(2, 3, 8, 8)], workers=True)


def test_another_layout_of_the_batch() -> None:
    """A batch of the captured shape with other strides; the step has views of it."""
    first, *rest = drawn(4, 6)
    agree(nn.Linear(3, 2), lambda m, b: squares(m, b.view(8, 3)), [first])
    m = nn.Linear(3, 2)
    loss = lambda m, b: squares(m, b.reshape(8, 3))  # noqa: E731
    agree(m, loss, [first, rest[0].t().contiguous().t(), torch.stack([rest[1], rest[2]], 1)[:, 0]])


def test_expanded_and_overlapping_batches() -> None:
    """Windows on a series, which share memory, and a number that is expanded; then batches
    in which they do not."""
    series = torch.randn(12)
    first = (series.unfold(0, 5, 1), torch.tensor(0.5).expand(8))
    other = (torch.randn(8, 5), torch.randn(8))
    agree(nn.Linear(5, 1), lambda m, b: (m(b[0])[:, 0] * b[1]).square().mean(), [first, other, first], workers=True)


def test_expanded_buffers_and_outputs() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))
            self.register_buffer("mask", torch.tensor([1.0, 0, 1, 1]).expand(3, 4))

        def forward(self, x: torch.Tensor) -> Any:
            return x * self.w * self.mask, self.mask, self.w[:1].expand(5)

    m, x = Masked(), torch.randn(3, 4)
    p = capture(m, None, x)
    for workers in False, True:
        with Loop(p, scattered(p, 1.0), m, workers=workers) as loop, torch.no_grad():
            got = loop.step(x)
            torch.testing.assert_close(got, m(x))
            got[1].zero_()  # is the caller's own
            torch.testing.assert_close(loop.step(x), m(x))


@pytest.mark.parametrize("workers", [False, True])
def test_gradients_of_their_own(workers: bool) -> None:
    """Gradients that are one tensor expanded, or the batch itself, come as tensors of their own."""

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = (nn.Parameter(torch.randn(3)) for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.a.sum() + self.b.sum() + torch.dot(self.c, x)

    m, x = Plain(), torch.randn(3)
    p = capture(m, lambda m, b: m(b), x)
    with Loop(p, scattered(p, 1.0), m, workers=workers) as loop:
        loop.step(x)
        for g in loop.gradients().values():
            g.mul_(2)
        m(x).backward()
        torch.testing.assert_close(loop.gradients(), {k: v.grad for k, v in m.named_parameters()})


def test_autocast_in_the_loss() -> None:
    def loss(m: Any, b: Any) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return F.cross_entropy(m(b).float(), torch.arange(4) % 3)

    m = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3))
    agree(m, loss, drawn(4, 6))
    p = capture(m, loss, drawn(4, 6)[0])
    assert any(o.target == "aten._to_copy.default" for o in p.ops)


@pytest.mark.parametrize("workers", [False, True])
def test_a_callers_autocast_changes_nothing(workers: bool) -> None:
    m, x = nn.Linear(64, 64), torch.randn(8, 64)
    p = capture(m, squares, x, sgd(m))
    with Loop(p, scattered(p, 0.6), m, workers=workers) as plain:
        want = [plain.step(x) for _ in range(2)]
    with torch.autocast("cpu", dtype=torch.bfloat16), Loop(p, scattered(p, 0.6), m, workers=workers) as loop:
        assert [loop.step(x) for _ in range(2)] == want


def test_where_gradients_are_off() -> None:
    """A capture under no_grad or inference_mode is of the same step."""
    m, x = nn.Linear(4, 4), torch.randn(2, 4)
    want = [o.name for o in capture(m, squares, x, sgd(m)).ops]
    for off in torch.no_grad(), torch.inference_mode():
        with off:
            assert [o.name for o in capture(m, squares, x, sgd(m)).ops] == want


def test_gradient_penalty() -> None:
    """A loss with a gradient in it."""

    def loss(m: Any, b: Any) -> torch.Tensor:
        x = b.clone().requires_grad_()
        y = m(x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y.square().mean() + (g.norm(dim=1) - 1).square().mean()

    agree(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)), loss, drawn(4, 6))


class Noise(nn.Module):
    """Dropout which in plain torch draws what op `op` of a captured step draws in step `t`."""

    op, t = -1, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.op >= 0:
            codegen.seeder([torch.device("cpu")])(self.op, self.t)
        return F.dropout(x, 0.5)


def noises_draw(m: nn.Module) -> Callable[[Any, int], None]:
    def before(p: Any, t: int) -> None:
        random = [i for i, o in enumerate(p.ops) if o.role == "call" and codegen.kinds.is_random(codegen.target_of(o.target)) and o.draws is None]
        noises = [x for x in m.modules() if isinstance(x, Noise)]
        assert len(random) == len(noises)
        for i, x in zip(random, noises):
            x.op, x.t = i, t

    return before


class Checkpointed(nn.Module):
    def __init__(self, *blocks: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for b in self.blocks:
            x = checkpoint(b, x, use_reentrant=False)
        return x


def block() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), Noise(), nn.Linear(8, 6), Noise(), nn.Tanh())


def test_dropout_draws_in_both_passes() -> None:
    m = nn.Sequential(block(), block())
    agree(m, squares, drawn(5, 6), before=noises_draw(m))


def test_dropout_under_activation_checkpointing(tmp_path: Any) -> None:
    """What is computed again has the mask of the first time: with another, gradients are
    wrong and nothing says so."""
    m = Checkpointed(block(), block())
    p = capture(m, squares, drawn(5, 6)[0])
    agree(m, squares, drawn(5, 6), before=noises_draw(m))
    again = [o.draws for o in p.ops if o.draws is not None]
    assert len(again) == 4 and len(set(again)) == 4
    p.save(str(tmp_path / "program.pt"))
    assert [o.draws for o in load(str(tmp_path / "program.pt")).ops] == [o.draws for o in p.ops]


def test_hooks() -> None:
    """Of parameters (a clipped gradient), of activations, and of modules, forward and backward."""
    m = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    m[0].weight.register_hook(lambda g: g.clamp(-1e-3, 1e-3))
    m[2].weight.register_hook(lambda g: g * 2)
    m[1].register_forward_hook(lambda _m, _x, y: y * 1.5)
    m[2].register_full_backward_hook(lambda _m, gx, gy: (gx[0] * 0.5,))

    def loss(m: Any, b: Any) -> torch.Tensor:
        y = m(b)
        y.register_hook(lambda g: g * 3)
        return y.square().mean()

    agree(m, loss, drawn(4, 6))


@pytest.mark.parametrize("name", ["weight", "old weight", "spectral", "old spectral"])
def test_normed_weights(name: str) -> None:
    """Weights that are computed in each step, in attributes; spectral norm keeps vectors in buffers."""
    norm = {"weight": nn.utils.parametrizations.weight_norm, "old weight": nn.utils.weight_norm, "spectral": nn.utils.parametrizations.spectral_norm, "old spectral": nn.utils.spectral_norm}[name]
    agree(nn.Sequential(norm(nn.Linear(6, 8)), nn.Tanh(), norm(nn.Linear(8, 3))), squares, drawn(4, 6))


def test_embeddings() -> None:
    """A row of padding has no gradient; gradients by frequency."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Embedding(9, 4, padding_idx=0), nn.Embedding(9, 4, scale_grad_by_freq=True)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.a(ids).mean(1) + self.b(ids).mean(1)

    g = torch.Generator().manual_seed(1)
    agree(Model(), squares, [torch.randint(0, 9, (4, 5), generator=g) for _ in range(4)], adamw)


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(6, 3, dtype=torch.cfloat))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.fft.fft(x).mul(0.1j).conj() @ self.w
        return torch.view_as_real(y * y.conj()).sum(-1)


@pytest.mark.parametrize("make", [sgd, adamw])
def test_complex_numbers(make: Any) -> None:
    agree(Complex(), squares, drawn(4, 6), make, workers=True)


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.round()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return g * (x.abs() < 1)


class HandsOn(torch.autograd.Function):
    """Its gradient of a is b itself."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(b)
        return (a * b).sum()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        return ctx.saved_tensors[0], None


def test_functions_of_the_users() -> None:
    agree(nn.Linear(6, 3), lambda m, b: squares(m, b) + Rounded.apply(m(b)).square().mean(), drawn(4, 6))

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.b, self.a = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return HandsOn.apply(self.a, self.b) + (self.b * x).square().sum()

    agree(Two(), lambda m, b: m(b), drawn(4))


def test_code_in_place() -> None:
    """On activations, views of them, and the batch."""

    def loss(m: Any, b: Any) -> torch.Tensor:
        b.mul_(2)
        y = m(b) * 1
        y[:, 0] = 0
        y[1:].add_(b[1:, :3])
        y.t()[1].sub_(1)
        return (y * 2).relu_().square().mean()

    batches = drawn(4, 6)
    agree(nn.Linear(6, 3), lambda m, b: loss(m, b.clone()), batches)
    kept = batches[0].clone()
    p = capture(nn.Linear(6, 3), loss, batches[0])
    with Loop(p, schedule.single(schedule.ops(p)), workers=False) as loop:
        loop.step(batches[0])
    assert torch.equal(batches[0], kept)


def test_several_batches_in_one_step() -> None:
    """Accumulation within the step: one loss of several batches, batch norm's statistics of each."""
    m = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    agree(m, lambda m, bs: sum(squares(m, b) / len(bs) for b in bs), [drawn(5, 6), [x + 1 for x in drawn(5, 6)]])


def test_clipping_outside_of_the_step() -> None:
    """The way of docs/pytorch.md: gradients of the loop, torch's clipping and optimizer, and
    the parameters back into the loop."""
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    twin = copy.deepcopy(model)
    optimizer, other = adamw(model), adamw(twin)
    p = capture(model, squares, drawn(4, 6)[0])
    with Loop(p, scattered(p, 0.6), model, workers=False) as loop:
        for x in drawn(4, 6):
            assert loop.step(x) == pytest.approx(squares(twin, x).item())
            for k, g in loop.gradients().items():
                model.get_parameter(k).grad = g
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            optimizer.step()
            loop.load_state_dict(model.state_dict())
            other.zero_grad()
            squares(twin, x).backward()
            nn.utils.clip_grad_norm_(twin.parameters(), 0.01)
            other.step()
            torch.testing.assert_close(dict(model.state_dict()), dict(twin.state_dict()))


class Attributed(nn.Module):
    """Leaves tensors in attributes: a mask that it makes once, and a loss that the caller reads."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.mask, self.aux, self.seen = nn.Linear(4, 4), None, None, []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.mask is None:
            self.mask = torch.ones_like(x).tril()
        y = self.linear(x) * self.mask
        self.aux = y.abs().mean()
        self.seen.append(y)
        return y


def test_attributes() -> None:
    """A step has them, a capture leaves none of its own; a second capture has the mask's values."""
    m = Attributed()
    for _ in range(2):
        agree(m, lambda m, b: squares(m, b) + 0.1 * m.aux, drawn(4, 4))
    assert isinstance(m.mask, torch.Tensor) and m.mask.sum() == 10 and all(type(x) is torch.Tensor for x in m.seen)


class Couple(torch.autograd.Function):
    """y = x + f(x), whose backward computes f again and gives its parameters their gradients
    by a backward of its own, as reversible layers do (RevNets, Reformer)."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, f: nn.Module) -> torch.Tensor:
        ctx.f = f
        ctx.save_for_backward(x)
        return x + f(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]
        (x,) = (t.detach().requires_grad_() for t in ctx.saved_tensors)
        with torch.enable_grad():
            torch.autograd.backward(ctx.f(x), grad)
        return grad + x.grad, None


class Reversible(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers, self.head = nn.ModuleList([nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(2)]), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.head(x)
        for f in self.layers:
            x = Couple.apply(x, f)
        return self.head(x)


def penalised(m: Any, b: Any) -> torch.Tensor:
    """A loss that leaves a gradient by itself."""
    (0.1 * m(b).abs().mean()).backward()
    return squares(m, b)


@pytest.mark.parametrize("loss", [squares, penalised])
def test_backward_within_backward(loss: Any) -> None:
    """Gradients that come by .backward() within the step are the parameters' too."""
    agree(Reversible(), loss, drawn(5, 6))


def test_recurrent_and_attention() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.gru = nn.LSTM(6, 4, num_layers=2, bidirectional=True, batch_first=True), nn.GRU(8, 6, batch_first=True)
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 12, 0.0, batch_first=True), 2, enable_nested_tensor=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.encoder(self.gru(self.lstm(x)[0])[0])

    m = Model()
    agree(m, squares, drawn(2, 5, 6))
    m.eval()
    p = capture(m, None, drawn(2, 5, 6)[0])
    with Loop(p, scattered(p, 0.6), m, workers=False) as loop, torch.no_grad():
        for x in drawn(2, 5, 6):
            torch.testing.assert_close(loop.step(x), m(x))


def test_compiled_parts() -> None:
    """Modules within the model, and a loss, that torch.compile wraps, are traced as they are."""
    m = nn.Sequential(nn.Linear(6, 8), torch.compile(nn.Sequential(nn.Tanh(), nn.Linear(8, 3)), backend="aot_eager"))
    agree(m, torch.compile(squares, backend="aot_eager"), drawn(4, 6, n=2))


def test_transforms() -> None:
    """Gradients of each sample by torch.func, within the loss."""

    def loss(m: Any, b: Any) -> torch.Tensor:
        params = dict(m.named_parameters())
        one = lambda q, x: torch.func.functional_call(m, q, (x,)).square().mean()  # noqa: E731
        return torch.func.vmap(one, (None, 0))(params, b).square().sum()

    agree(nn.Linear(6, 3), loss, drawn(4, 6))


def test_frozen_and_unused() -> None:
    """Parameters that are frozen, unused or another group's."""
    m = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    m.spare = nn.Linear(2, 2)
    m[0].weight.requires_grad_(False)
    m.forward = lambda x: m[2](m[1](m[0](x)))  # type: ignore[method-assign]
    agree(m, squares, drawn(4, 6), lambda m: torch.optim.Adam([{"params": [m[0].weight, m[0].bias], "lr": 0.1}, {"params": [*m[2].parameters(), *m.spare.parameters()], "betas": (0.5, 0.9), "weight_decay": 0.1}], lr=0.01, foreach=False))


@pytest.mark.parametrize("how", ["foreach", "fused"])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_forms_of_an_optimizer(kind: Any, how: str) -> None:
    """All are the single-tensor form but for rounding."""
    agree(nn.Linear(6, 3), squares, drawn(4, 6), lambda m: kind(m.parameters(), lr=0.01, **({"momentum": 0.9} if kind is torch.optim.SGD else {}), **{how: True}))
