"""What a captured step cannot have is refused in one line, with a way out: none of it may train wrongly without a word."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import math
import random
import types
from typing import Any

import pytest
import releases
import torch
import torch.nn as nn
import torch.nn.functional as F
from placer_torch import CaptureError, FormatError, attributes, capture, checks
from placer_torch import state as states
from torch.utils.checkpoint import checkpoint


def squares(m: Any, b: Any) -> torch.Tensor:
    return m(b).square().mean()


def refused(says: str, model: nn.Module, loss: Any = squares, batch: Any = None, optimizer: Any = None) -> None:
    was = {k: vars(m).copy() for k, m in model.named_modules()}
    with pytest.raises(CaptureError, match=says) as e:
        capture(model, loss, torch.randn(3, 4) if batch is None else batch, optimizer)
    assert "\n" not in str(e.value)
    assert {k: vars(m) for k, m in model.named_modules()} == was, "the model is another"


def test_hooks_that_do_not_run() -> None:
    m = nn.Linear(4, 4)
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    o.register_step_post_hook(lambda *_: None)
    refused("optimizer SGD has hooks of its step", m, optimizer=o)
    m.weight.register_post_accumulate_grad_hook(lambda p: None)
    refused("parameter weight has a hook of its accumulated gradient.*use register_hook", m)


class Changes(nn.Module):
    """A model whose code changes a parameter."""

    def __init__(self, how: Any) -> None:
        super().__init__()
        self.linear, self.how = nn.Linear(4, 4), how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.how(self.linear.weight)
        return self.linear(x)


def assign(w: torch.Tensor) -> None:
    w.data = F.normalize(w.data)


@pytest.mark.parametrize("how", [lambda w: w.clamp_(-0.1, 0.1), lambda w: w.data.mul_(0.5), lambda w: w.copy_(F.normalize(w))], ids=["clamp", "data", "copy"])
def test_parameters_that_the_code_changes(how: Any) -> None:
    m = Changes(how)
    refused("the code changes parameter linear.weight", m, optimizer=torch.optim.SGD(m.parameters(), lr=0.1))
    refused("the code changes parameter linear.weight", m, None)


def test_data_that_is_assigned() -> None:
    refused(r"\.data", Changes(assign))


def test_rows_that_are_normed_in_place() -> None:
    refused("embedding_renorm|changes parameter weight", nn.Embedding(9, 4, max_norm=1.0), batch=torch.arange(3))


def test_references_from_before() -> None:
    """A loss over a list of the parameters had them as they were at the capture, and no
    gradient of them."""
    m = nn.Linear(4, 4)
    weights = [p for p in m.parameters() if p.dim() > 1]
    refused("reads parameter weight by a reference from before the step", m, lambda m, b: squares(m, b) + sum(w.square().sum() for w in weights))
    m = nn.BatchNorm1d(4)
    mean = m.running_mean
    refused("reads buffer running_mean by a reference from before the step", m, lambda m, b: squares(m, b) + mean.sum())


def test_modules_of_others() -> None:
    """A generator's step has the discriminator's weights as they are now; frozen ones may be so."""
    m, other = nn.Linear(4, 4), nn.Linear(4, 1)
    loss = lambda m, b: other(m(b)).mean()  # noqa: E731
    refused(r"uses a tensor of shape \[1, 4\] that requires a gradient and is no parameter", m, loss)
    other.requires_grad_(False)
    assert len(capture(m, loss, torch.randn(3, 4)).constants) == 2


class Carries(nn.Module):
    """A recurrent state in an attribute, beside what is left there and not read."""

    def __init__(self, begin: Any) -> None:
        super().__init__()
        self.linear, self.state, self.last = nn.Linear(4, 4), begin, None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.state["h"][0] if isinstance(self.state, dict) else self.state
        y = self.linear(x if h is None else x + h)
        self.last = y
        self.state = {"h": (y.detach(), 1)} if isinstance(self.state, dict) else y.detach()
        return y


@pytest.mark.parametrize("begin", [None, torch.zeros(3, 4), {"h": (torch.zeros(3, 4), 1)}], ids=["none", "tensor", "nested"])
def test_state_in_attributes(begin: Any) -> None:
    refused(r"attribute state.* carries a value from one step to the next.*register_buffer\('state", Carries(begin))


class Holder:
    """An object with slots, in place of a dataclass."""

    __slots__ = ("v",)

    def __init__(self, v: Any) -> None:
        self.v = v


@dataclasses.dataclass
class Held:
    v: Any


class Within(nn.Module):
    """A running mean in what an attribute holds."""

    def __init__(self, how: Any, begin: Any) -> None:
        super().__init__()
        self.linear, self.how, self.held = nn.Linear(4, 4), how, begin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return y - self.how(self.held, y.detach().mean(0))


def mean(held: Any, now: torch.Tensor) -> Any:
    held.v = 0.9 * held.v + 0.1 * now
    return held.v


def queue(held: Any, now: torch.Tensor) -> Any:
    was = sum(held)
    held.append(now)
    return was


def delayed(held: Any, now: torch.Tensor) -> Any:
    was, held[1], held[0] = held[1], held[0], now
    return was


def decayed(held: Any, now: torch.Tensor) -> Any:
    held.v = held.v * 0.9
    return held.v


def counted(held: Any, now: torch.Tensor) -> Any:
    held.v += 1
    return held.v


@pytest.mark.parametrize(
    ("how", "begin", "says"),
    [
        (mean, lambda: Held(torch.zeros(4)), r"attribute held\.v carries a value"),
        (mean, lambda: Holder(torch.zeros(4)), r"attribute held\.v carries a value"),
        (mean, lambda: types.SimpleNamespace(v=torch.zeros(4)), r"attribute held\.v carries a value"),
        (decayed, lambda: Held(torch.ones(4)), r"attribute held\.v carries a value"),
        (queue, lambda: collections.deque([torch.zeros(4)], maxlen=2), r"attribute held\[[01]\] carries a value"),
        (delayed, lambda: [0.0, 0.0], r"attribute held\[[01]\] carries a value"),
        (counted, lambda: Held(0), r"depends on attribute held\.v, a number"),
    ],
    ids=["dataclass", "slots", "namespace", "decay", "deque", "two steps", "number"],
)
def test_state_within_attributes(how: Any, begin: Any, says: str) -> None:
    """It is as before behind the capture, and the model runs."""
    m, was, x = Within(how, begin()), begin(), torch.randn(3, 4)
    refused(says, m)
    assert not isinstance(m.held, Holder | Held) or torch.equal(torch.as_tensor(m.held.v), torch.as_tensor(was.v))
    assert not isinstance(m.held, collections.deque) or len(m.held) == 1 and m.held.maxlen == 2
    assert torch.isfinite(m(x)).all()


class Centred(nn.Module):
    """A loss with a running mean, as DINO's."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("center", torch.zeros(4))
        self.n = 0

    def forward(self, m: Any, b: Any) -> torch.Tensor:
        y = m(b)
        loss = (y - self.center).square().mean()
        self.center = self.center * 0.9 + 0.1 * y.detach().mean(0)
        return loss

    def warm(self, m: Any, b: Any) -> torch.Tensor:
        self.n += 1
        return squares(m, b) * min(1.0, self.n / 10)


def test_state_of_the_loss() -> None:
    loss = Centred()
    refused(r"attribute loss\.center carries a value.*register_buffer\('center'", nn.Linear(4, 4), loss)
    refused(r"depends on attribute loss\.n, a number", nn.Linear(4, 4), loss.warm)
    assert type(loss.center) is torch.Tensor and loss.n == 0


class Kind(enum.Enum):
    A = 1
    B = 2


class Counts(nn.Module):
    def __init__(self, reads: bool) -> None:
        super().__init__()
        self.linear, self.n, self.reads = nn.Linear(4, 4), 0, reads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.n += 1
        return self.linear(x) * (1 / self.n if self.reads else 1.0)


def test_numbers_that_the_code_counts() -> None:
    refused("depends on attribute n, a number that the model's code changes", Counts(True))
    m = Counts(False)
    capture(m, squares, torch.randn(3, 4))
    assert m.n == 0


class Steps(nn.Module):
    """Counts its steps and asks for them; what it asks may come out otherwise at any later one."""

    def __init__(self, asks: Any, begin: Any = 0, keeps: bool = False) -> None:
        super().__init__()
        self.linear, self.asks, self.n, self.keeps, self.last = nn.Linear(4, 4), asks, begin, keeps, None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        if self.keeps:
            self.last = y.detach()
        self.n, scale = self.asks(self.n)
        return y * scale


@pytest.mark.parametrize(
    "asks",
    [
        lambda n: (n + 1, 2.0 if n % 4 == 3 else 1.0),
        lambda n: (n + 1, 2.0 if n > 100 else 1.0),
        lambda n: (n + 1, 2.0 if n == 1000 else 1.0),
        lambda n: (n + 1, (1.0, 2.0)[min(n, 900) // 900]),
        lambda n: ((n + 1) % 7, 1.0 if n else 1.0),
        lambda n: (n + 1, 1.0 if math.sin(n) < 1 else 2.0),
        lambda n: (n + 1.5, 1.0 if 1e9 > n else 2.0),
    ],
    ids=["every fourth", "from a step on", "at a step", "index", "round", "function", "float"],
)
@pytest.mark.parametrize("keeps", [False, True])
def test_numbers_that_the_code_looks_at(asks: Any, keeps: bool) -> None:
    """Beside a tensor that it leaves in an attribute too."""
    refused("depends on attribute n, a number that the model's code changes", Steps(asks, keeps=keeps))


@pytest.mark.parametrize("begin", ["warm", None, Kind.A, True, frozenset({1})], ids=["str", "none", "enum", "bool", "set"])
def test_values_that_the_code_changes(begin: Any) -> None:
    refused("depends on attribute n, a value that the model's code changes", Steps(lambda n: ("hot", 0.1 if n == begin else 1.0), begin))


def test_values_that_come_back() -> None:
    """What a step changes may be what it likes where the step is the same each time."""
    for asks, begin in [(lambda n: (not n, 1.0), True), (lambda n: ("b" if n == "a" else "a", 1.0), "a"), (lambda n: ({**n, len(n): 3 * len(n)}, 1.0), {}), (lambda n: (3 * n - 1, 1.0), 2)]:
        m = Steps(asks, begin, keeps=True)
        capture(m, squares, torch.randn(3, 4))
        assert m.n == begin and m.last is None
    refused("depends on attribute n", Steps(lambda n: (not n, 1.0 if n else 2.0), True))


class Alternates(nn.Module):
    """Two layers in turn, whose ops are alike."""

    def __init__(self, chosen: Any) -> None:
        super().__init__()
        self.a, self.b, self.turn, self.chosen = nn.Linear(4, 4), nn.Linear(4, 4), 0, chosen

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.turn = 1 - self.turn
        return self.chosen(self, x)


@pytest.mark.parametrize("chosen", [lambda m, x: (m.a, m.b)[m.turn](x), lambda m, x: m.a(x) * torch.tensor([2.0, 3.0][m.turn]), lambda m, x: m.a(x) - m.b(x) if m.turn else m.b(x) - m.a(x)], ids=["layers", "constants", "order"])
def test_steps_of_like_ops(chosen: Any) -> None:
    refused("depends on attribute turn", Alternates(chosen))


@pytest.mark.parametrize("by", ["attribute", "buffer"])
def test_masks_of_buffers(by: str) -> None:
    """One that is made once of a buffer may stay, if no step writes the buffer."""

    class Bias(nn.Module):
        def __init__(self, writes: bool) -> None:
            super().__init__()
            self.linear, self.writes = nn.Linear(4, 4), writes
            self.register_buffer("slopes", torch.tensor([0.5]))
            self.bias = None
            if by == "buffer":
                del self.bias
                self.register_buffer("bias", None, persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.bias is None:
                made = self.slopes * torch.arange(4)
                setattr(self, "bias", made) if by == "attribute" else self.register_buffer("bias", made.detach(), persistent=False)
            if self.writes:
                self.slopes.mul_(0.9)
            assert float(self.bias[0]) == 0
            return self.linear(x) + self.bias

    m, x = Bias(False), torch.randn(3, 4)
    p = capture(m, squares, x)
    assert m.bias is None and p.outputs
    refused("takes a number out of buffer slopes|attribute bias carries a value", Bias(True))


def test_batches_that_share_memory() -> None:
    """Of which the code changes one: in a captured step they are two."""
    m, x = nn.Linear(4, 4), torch.randn(3, 4)

    def loss(m: Any, b: Any) -> torch.Tensor:
        return F.mse_loss(m(b[0].mul_(0.5)), b[1])

    refused(r"batch\[0\] and batch\[1\] share memory", m, loss, (x, x))
    refused(r"batch\[.\] and batch\[.\] share memory", m, loss, (x, x[:, :]))
    capture(m, loss, (x, x.clone()))
    capture(m, lambda m, b: F.mse_loss(m(b[0]), b[1]), (x, x))


class Plain(nn.Module):
    """Adds to a tensor that is no buffer."""

    def __init__(self, by: Any) -> None:
        super().__init__()
        self.linear, self.seen, self.by = nn.Linear(4, 4), torch.zeros(4), by

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += self.by(x)
        return self.linear(x) + self.seen


@pytest.mark.parametrize("by", [lambda x: 1, lambda x: x.mean(0)], ids=["number", "tensor"])
def test_tensors_that_are_no_buffers(by: Any) -> None:
    refused("neither a parameter nor a buffer.*register_buffer", Plain(by))


class Pair(nn.Module):
    def __init__(self, a: torch.Tensor, b: torch.Tensor) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(a), nn.Parameter(b)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * (self.a.square().sum() + self.b.square().sum())


WHOLE = torch.randn(4, 8)


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [(WHOLE[:, :5], WHOLE[:, 3:], True), (WHOLE, WHOLE.t(), True), (WHOLE[1], WHOLE[:, 2], True), (WHOLE[:, :4], WHOLE[:, 4:], False), (WHOLE[:2], WHOLE[2:], False)],
)
def test_memory_in_common(a: torch.Tensor, b: torch.Tensor, common: bool) -> None:
    """Two parameters of which an update of one is an update of the other's, and two that
    only lie in one piece of memory."""
    m, loss, x = Pair(a, b), lambda m, b: m(b), torch.ones(())
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    if common:
        refused("a and b share memory|b and a share memory", m, loss, x, o)
        capture(m, loss, x)  # writes neither
    else:
        capture(m, loss, x, o)


def test_numbers_of_other_generators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's and NumPy's would be drawn once, at the capture; they go on as if it had not been."""
    random.seed(3)
    want = random.Random(3).random()
    refused("draws from random, whose numbers would be the same", nn.Linear(4, 4), lambda m, b: squares(m, b) * random.random())
    assert random.random() == want
    state = [0]
    numpy = types.SimpleNamespace(get_state=lambda: list(state), set_state=lambda s: state.__setitem__(slice(None), s), rand=lambda: state.__setitem__(0, state[0] + 1) or 0.5)
    monkeypatch.setattr(checks, "sys", types.SimpleNamespace(modules={"numpy": types.SimpleNamespace(random=numpy)}))
    refused("draws from numpy.random", nn.Linear(4, 4), lambda m, b: squares(m, b) * numpy.rand())
    assert state == [0]


def test_generators_and_seeds_of_the_code() -> None:
    """Both have the line. A seed that torch draws (as Reformer does) is another in each step,
    and what it gives twice is drawn once."""
    refused(r"randn.generator in the model \(.*test_refusals.py:\d+\) draws from a torch.Generator", nn.Linear(4, 4), lambda m, b: squares(m, b + torch.randn(4, generator=torch.Generator())))
    m, x, state = nn.Linear(4, 4), torch.randn(3, 4), torch.get_rng_state()
    refused(r"randn.default in the model \(.*test_refusals.py:\d+\) draws behind a seed that the code gives", m, lambda m, b: squares(m, b + seeded(3)), x)
    assert torch.equal(torch.get_rng_state(), state)
    p = capture(nn.Linear(4, 4), lambda m, b: squares(m, b + seeded(seed := torch.seed()) + torch.rand(4) + seeded(seed)), torch.randn(3, 4))
    first, other, again = (i for i, o in enumerate(p.ops) if "rand" in o.name)
    assert [p.ops[i].draws for i in (first, other, again)] == [None, None, first]
    assert torch.seed is torch.random.seed and torch.seed.__module__ == "torch.random"


def seeded(seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    return torch.randn(4)


def test_generators_in_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    m = Within(lambda g, y: g.random(), random.Random(0))
    refused("draws from attribute held, whose numbers would be the same", m)
    assert m.held.random() == random.Random(0).random()

    class Generator:
        """As numpy.random.Generator has its state."""

        def __init__(self) -> None:
            self.bit_generator = types.SimpleNamespace(state={"n": [0]})

        def random(self) -> float:
            self.bit_generator.state["n"][0] += 1
            return 0.5

    numpy = types.SimpleNamespace(Generator=Generator, RandomState=random.Random, get_state=lambda: 0, set_state=lambda s: None)
    monkeypatch.setattr(attributes, "sys", types.SimpleNamespace(modules={"numpy": types.SimpleNamespace(random=numpy)}))
    Generator.__module__ = "random"  # of a library
    m = Within(lambda g, y: g.random(), Generator())
    refused("draws from attribute held, whose numbers would be the same", m)
    assert m.held.bit_generator.state == {"n": [0]}


def test_tensors_that_are_not_dense() -> None:
    sparse = torch.eye(4).to_sparse()
    m = nn.Linear(4, 4)
    refused(r"batch\[1\] is a tensor of layout torch.sparse_coo", m, lambda m, b: m(b[0]).sum(), (torch.ones(2, 4), sparse))
    m.register_buffer("adjacent", sparse)
    refused("buffer adjacent is a tensor of layout torch.sparse_coo.*to_dense", m)
    refused("makes a sparse tensor.*sparse=False", nn.Embedding(9, 4, sparse=True), batch=torch.arange(3))
    refused("parameter weight has no shape yet: run the model once", nn.LazyLinear(4))
    p = capture(nn.Linear(4, 4), None, torch.eye(4))
    with pytest.raises(FormatError, match="is a tensor of layout torch.sparse_coo, captured as a dense one"):
        states.leaves(p, sparse)


def test_statistics_that_count() -> None:
    """Batch norm's momentum of None divides by a number out of a tensor."""
    refused("takes a number out of buffer num_batches_tracked", nn.BatchNorm1d(4, momentum=None))


def test_scaled_losses() -> None:
    """And the scaler is as new: it would keep a tensor without a value."""
    scaler, x = torch.amp.GradScaler("cpu"), torch.randn(3, 4)
    refused("scaled by a GradScaler", nn.Linear(4, 4), lambda m, b: scaler.scale(squares(m, b)), x)
    assert scaler.scale(torch.ones(())).item() == 65536


def test_reentrant_checkpoints() -> None:
    """Nothing of the model would be trained where its first input is the batch."""
    m = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    refused("use_reentrant=False", m, lambda m, b: checkpoint(m, b.requires_grad_(), use_reentrant=True).sum())
    refused("use_reentrant=False", m, lambda m, b: checkpoint(m[1], m[0](b), use_reentrant=True).sum())


def test_losses_of_no_parameter() -> None:
    m = nn.Linear(4, 4)
    refused("depends on no parameter", m, lambda m, b: b.clone().requires_grad_().sum() + 0 * m(b).detach().sum(), optimizer=torch.optim.SGD(m.parameters(), lr=0.1))


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    more: Any = None


class Opaque:
    def __init__(self, x: Any) -> None:
        self.x = x


class Returns(nn.Module):
    def __init__(self, how: Any) -> None:
        super().__init__()
        self.linear, self.how = nn.Linear(4, 4), how

    def forward(self, x: torch.Tensor) -> Any:
        return self.how(self.linear(x))


def test_outputs_that_no_file_holds(tmp_path: Any) -> None:
    """A dataclass that pytree knows comes back as a dict, from the file too; other classes
    were written to a file that could not be read."""
    import torch.utils._pytree as pytree
    from placer_torch import Loop, load, schedule

    refused("the model returns a value of type Output.*wrap the model", Returns(Output), None)
    torch.export.register_dataclass(Output)
    pytree.register_pytree_node(Opaque, lambda o: ([o.x], None), lambda x, _: Opaque(*x))
    refused("the model returns a value of type Opaque.*wrap the model", Returns(Opaque), None)
    m = Returns(lambda y: Output(y, [y * 2, 3]))
    capture(m, None, torch.ones(2, 4)).save(str(tmp_path / "program.pt"))
    p = load(str(tmp_path / "program.pt"))
    with Loop(p, schedule.single(schedule.ops(p)), m, workers=False) as loop, torch.no_grad():
        got, want = loop.step(torch.ones(2, 4)), m(torch.ones(2, 4))
    assert torch.equal(got["logits"], want.logits) and torch.equal(got["more"][0], want.more[0]) and got["more"][1] == 3


def test_constants_without_values() -> None:
    """A tensor that a model on the meta device has in an attribute."""
    m = Returns(lambda y: (y, m.scale * 2))
    m.scale = torch.ones(4, device="meta")
    refused("has no values and is neither a parameter nor a buffer", m, None)


def test_constants_stay_as_they_are() -> None:
    """A program has the values of its capture, and of a slice no more than the slice."""
    big, m = torch.ones(1000, 4), nn.Linear(4, 4)
    part, batch = big[3], torch.ones(1000, 4)[5:8]
    p = capture(m, lambda m, b: (m(b) * part).sum(), batch)
    c, again = p.constants.values()  # of the forward and the backward op
    (b,) = p.batch.values()
    part.zero_(), batch.zero_()
    assert c is again and c.untyped_storage().nbytes() == 16 and torch.equal(c, torch.ones(4))
    assert b.untyped_storage().nbytes() == 48 and torch.equal(b, torch.ones(3, 4))


def test_copies_of_a_model_are_its_own() -> None:
    """A model that a failed capture leaves can be captured."""
    m = Carries(None)
    refused("carries a value", m)
    twin = copy.deepcopy(m)
    assert twin.state is None and twin.last is None


@releases.developed
def test_checks_on_the_host() -> None:
    """torch.linalg.solve raises by what it computed; solve_ex does not, and is captured."""
    refused("_linalg_check_errors.*cholesky_ex, inv_ex and solve_ex", nn.Linear(4, 4), lambda m, b: torch.linalg.solve(m(b), b).sum(), torch.randn(4, 4))
    capture(nn.Linear(4, 4), lambda m, b: torch.linalg.solve_ex(m(b), b)[0].sum(), torch.randn(4, 4), None)


def test_one_line_alone(capfd: pytest.CaptureFixture[str]) -> None:
    """torch's log of an op that refuses its operands stays out."""
    refused("avg_pool2d.*Output size is too small", nn.Conv2d(3, 3, 3), lambda m, b: F.avg_pool2d(m(b), 9).sum(), torch.randn(2, 3, 6, 6))
    assert "fake_tensor" not in capfd.readouterr().err
