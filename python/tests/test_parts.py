"""Products of which the model takes columns apart, cut part by part, in two processes."""

from __future__ import annotations

import copy
from typing import Any, Callable

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import models
import pipelines
import releases
import split_models
import strategies
from placer_torch.parallel import distribute
from placer_torch.parallel.errors import StrategyError
from placer_torch.parallel.parts import Order, Parted, index
from strategies import KINDS, LAYERS, SAMPLES, SIZE, strategy

pytestmark = [pytest.mark.forks, releases.products]

THIRDS = (SIZE["width"],) * 3
PARTS = {f"h.{k}.attn.c_attn": THIRDS for k in LAYERS}
UNEQUAL = (8, 4, 4)  # queries, and half as many keys and values

# What a model's code does with columns that are queries, keys and values, and the layouts of what it
# gets on two ranks: 2 is cut by the third dimension, None is whole.
TAKEN: dict[str, tuple[tuple[int, ...], Callable[[torch.Tensor], Any], list[int | None]]] = {
    "split into equals": ((4, 4, 4), lambda y: y.split(4, dim=2), [2, 2, 2]),
    "torch.split": (UNEQUAL, lambda y: torch.split(y, [8, 4, 4], -1), [2, 2, 2]),
    "chunk": ((8, 8), lambda y: y.chunk(2, dim=-1), [2, 2]),
    "tensor_split": ((8, 8), lambda y: y.tensor_split(2, dim=-1), [2, 2]),
    "slices": (UNEQUAL, lambda y: (y[..., :8], y[:, :, 8:12], y[..., 12:]), [2, 2, 2]),
    "narrow": (UNEQUAL, lambda y: (y.narrow(-1, 0, 8), y.narrow(2, 8, 4)), [2, 2]),
    "keys with values": (UNEQUAL, lambda y: y[..., 8:].chunk(2, -1), [2, 2]),
    "views": ((4, 4, 4), lambda y: y.view(2, 3, 3, 2, 2).unbind(2), [2, 2, 2]),
    "views, permuted": ((4, 4, 4), lambda y: y.reshape(2, 3, 3, 2, -1).permute(2, 0, 3, 1, 4).unbind(0), [1, 1, 1]),
    "unflatten": ((8, 8), lambda y: y.unflatten(-1, (2, 8)).unbind(2), [2, 2]),
    "clamped": (UNEQUAL, lambda y: y.clamp(-0.1, 0.1).float().double().split([8, 4, 4], -1), [2, 2, 2]),
    "aten": (UNEQUAL, lambda y: (torch.ops.aten.slice.Tensor(y, 2, 0, 8), *torch.ops.aten.split_with_sizes.default(y, [8, 4, 4], 2)[1:]), [2, 2, 2]),
    "rows of tokens": ((4, 4, 4), lambda y: y.view(6, 12).split(4, 1), [1, 1, 1]),
    "other columns": (UNEQUAL, lambda y: (y[..., 2:6], y[..., :8]), [None, 2]),
    "every other column": (UNEQUAL, lambda y: (y[..., ::2],), [None]),
    "other dimensions": (UNEQUAL, lambda y: (*y.split(1, 0), y.transpose(1, 2)), [None, None, None]),
    "a sum": (UNEQUAL, lambda y: (y + 1.0, y.sum(-1), torch.cat([y, y])), [None, None, None]),
}


@pytest.mark.parametrize("name", TAKEN)
def test_columns_are_the_models(name: str) -> None:
    """What the code takes has the values and gradients of the whole product's, and parts stay cut."""
    sizes, take, layouts = TAKEN[name]

    def work() -> None:
        mesh = init_device_mesh("cpu", (2,))
        torch.manual_seed(0)
        whole = torch.randn(2, 3, sum(sizes), dtype=torch.float64, requires_grad=True)
        ours = distribute_tensor(whole.detach()[..., index(sizes, 2)], mesh, [Shard(2)]).requires_grad_()
        parted = Parted(ours, sizes)
        assert (parted.shape, parted.dtype, parted.dim(), parted.size(-1)) == (whole.shape, whole.dtype, 3, sum(sizes))
        got, want = take(parted), take(whole)
        for a, b, layout in zip(got, want, layouts, strict=True):
            assert isinstance(a, DTensor) and list(a.placements) == [Replicate() if layout is None else Shard(layout)], (a, layout)
            assert a.shape == b.shape
            torch.testing.assert_close(a.full_tensor(), b)
        (grad,) = torch.autograd.grad(sum((a.full_tensor() ** 2).sum() for a in got), ours)
        (wanted,) = torch.autograd.grad(sum((b**2).sum() for b in want), whole)
        torch.testing.assert_close(grad.full_tensor(), wanted[..., index(sizes, 2)])

    strategies.in_processes(2, work)


def test_order() -> None:
    assert index((4, 2), 2).tolist() == [0, 1, 4, 2, 3, 5]
    x = torch.arange(6.0)
    order = Order({"a": (4, 2)}, 2)
    assert order.arranged("a.bias", x).tolist() == [0, 1, 4, 2, 3, 5]
    assert torch.equal(order.restored("a.bias", order.arranged("a.bias", x)), x)
    assert order.arranged("b.bias", x) is x and order.arranged("a.bias", 3) == 3


def test_training() -> None:
    """Queries, keys and values by one layer: alone, with replicas' shares, computed again."""
    for more in ({"mb": 2, "recompute": True}, {"vocabulary": True, "sequence": True}):
        held(strategies.run(KINDS["gpt2"].make, [strategy(KINDS["gpt2"], tensor=2, parts=PARTS, **more)]))
    held(strategies.run(KINDS["gpt2"].make, [strategy(KINDS["gpt2"], tensor=2, data=2, sharding=s, parts=PARTS) for s in ("ddp", "zero-1", "zero-3")]))


@pytest.mark.parametrize("kind, column, sizes", [("outer", "qkv", (16, 16, 16)), ("halves", "up", (32, 32)), ("viewed", "up", (32, 32))])
def test_blocks(kind: str, column: str, sizes: tuple[int, ...]) -> None:
    def make() -> models.Example:
        model, loss, (x, y), _ = split_models.block(kind)
        return model.double(), loss, (x.repeat(4, 1, 1).double(), y.repeat(4, 1)), torch.optim.AdamW(model.parameters(), lr=0.01)

    doc = strategy(KINDS["gpt2"], tensor=2, layers=[["0"]], columns=[f"0.{column}"], rows=["0.out" if column == "qkv" else "0.down"], parts={f"0.{column}": sizes})
    held(strategies.run(make, [doc]))


class Patches(nn.Module):
    """Patches by a convolution, which ranks do not cut, in front of a block that they do."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.block, self.head = nn.Conv2d(3, split_models.WIDTH, 4, 4), split_models.Attention("outer"), nn.Linear(split_models.WIDTH, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.block(self.patch(x).flatten(2).transpose(1, 2)).mean(1))


def images() -> models.Example:
    torch.manual_seed(0)
    model = Patches().double()
    return model, models.cross_entropy, (torch.randn(SAMPLES, 3, 8, 8, dtype=torch.float64), torch.randint(0, 10, (SAMPLES,))), torch.optim.SGD(model.parameters(), lr=0.1)


CUT: dict[str, Any] = {"tensor": 2, "columns": ["block.qkv"], "rows": ["block.out"], "parts": {"block.qkv": (16, 16, 16)}}


def test_convolutions() -> None:
    held(strategies.run(images, [strategy(KINDS["gpt2"], layers=[["block"]], mb=2, **CUT)]))
    s = pipelines.strategy("1f1b", [["patch"], ["block", "head"]], micro_batches=2, batch=SAMPLES, **CUT)
    got, want = pipelines.run(images, s), pipelines.plain(images, s)
    assert got.losses == pytest.approx(want.losses, abs=1e-8)


def test_pipeline() -> None:
    """The stages' copies of the layers are cut likewise, and states are the model's."""
    kind = KINDS["gpt2"]
    columns = [f"h.{k}.{m}" for k in LAYERS for m in kind.columns]
    rows = [f"h.{k}.{m}" for k in LAYERS for m in kind.rows]
    s = pipelines.strategy("1f1b", [["wte", "wpe", "h.0"], ["h.1", "ln_f", "lm_head"]], tensor=2, columns=columns, rows=rows, parts=PARTS, batch=SAMPLES)
    got, want = pipelines.run(kind.make, s), pipelines.plain(kind.make, s)
    assert got.losses == pytest.approx(want.losses, abs=1e-8)
    for k, x in want.state.items():
        torch.testing.assert_close(got.state[k], x, atol=1e-8, rtol=0)


def test_states(tmp_path: Any) -> None:
    """State and optimizer's state of replicas go on in parts, and the other way round."""
    kind = KINDS["gpt2"]
    file = tmp_path / "state.pt"

    def work() -> float:
        model, loss, batch, optimizer = kind.make()
        pairs = [copy.deepcopy((model, optimizer)) for _ in range(2)]
        a = distribute(*_given(pairs[0], loss), strategy(kind, tensor=2, parts=PARTS), device="cpu")
        a.step(batch)
        state = a.state_dict(), a.optimizer_state()
        if dist.get_rank() == 0:
            torch.save(state, file)
        dist.barrier()
        b = distribute(*_given(pairs[1], loss), strategy(kind, data=2), device="cpu")
        b.load_state_dict(*torch.load(file))
        half = SAMPLES // 2
        own = tuple(x[b.replica * half : (b.replica + 1) * half] for x in batch)
        a.load_state_dict(*torch.load(file))
        return max(abs(a.step(batch) / b.step(own) - 1) for _ in range(2))

    assert strategies.in_processes(2, work) < 1e-12


@pytest.mark.parametrize("parts, says", [
    ({"h.0.attn.c_proj": (8, 8)}, "h.0.attn.c_proj is no linear layer that is cut by columns"),
    ({"h.0.attn.c_attn": (16, 16)}, "out_features is 48"),
    ({"h.0.attn.c_attn": (17, 15, 16)}, "a part of 17 columns is not divisible by 2"),
])  # fmt: skip
def test_refused(parts: dict[str, Any], says: str) -> None:
    model, loss, _, optimizer = KINDS["gpt2"].make()
    with pytest.raises(StrategyError, match=says):
        distribute(model, loss, optimizer, strategy(KINDS["gpt2"], tensor=2, parts=parts), device="cpu")


def _given(pair: Any, loss: Any) -> tuple[Any, Any, Any]:
    return pair[0], loss, pair[1]


def held(found: list[strategies.Got]) -> None:
    for got in found:
        assert got.loss < 1e-8 and got.state < 1e-8, got
