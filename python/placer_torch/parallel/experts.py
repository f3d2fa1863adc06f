"""Experts of mixtures shared out among replicas: rows are sent to the experts that a router chose
for them, and back (GShard: Lepikhin et al., arXiv:2006.16668, section 3).

A module that holds the weights of all experts keeps its code. Each process has some of the
weights, and runs the module on the rows that are sent to it, as if there were no other experts."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from typing import Any, Callable, Iterator, Sequence, cast

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from .errors import StrategyError
from .names import plain

Take = Callable[[torch.Tensor], torch.Tensor]


@dataclasses.dataclass(frozen=True)
class Share:
    """What one of `ranks` processes has of a module's experts."""

    experts: int  # of all processes together
    ranks: int
    take: Take  # the process's part of a parameter

    @property
    def own(self) -> int:
        return self.experts // self.ranks


def number(module: nn.Module) -> int:
    """The experts of a module: the leading dimension of all its parameters. 0 where they have no
    such."""
    sizes = {p.shape[0] if p.dim() > 1 else 0 for p in module.parameters()}
    return sizes.pop() if len(sizes) == 1 else 0


def chosen(module: nn.Module) -> bool:
    """Whether module is called with rows, the experts of each and their weights, as those of
    transformers are: forward(rows [T, width], experts [T, k], weights [T, k]) -> [T, width]. If not,
    it is called with a block of rows for each expert: forward(rows [E, C, width]) -> [E, C, columns]."""
    return _arguments(module) == 3


def understood(module: nn.Module) -> bool:
    return _arguments(module) in (1, 3)


def _arguments(module: nn.Module) -> int:
    """How many a module's forward takes by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds for p in inspect.signature(type(module).forward).parameters.values()) - 1


def cut(module: nn.Module, paths: Sequence[str], mesh: DeviceMesh) -> None:
    """Leaves this process, of the modules of these paths, its part of the experts. mesh: the
    processes that share them out. Parameters become DTensors of it."""
    there = dict(module.named_modules())
    for path in (p for p in paths if p in there):
        m = there[path]
        here = Share(number(m), mesh.size(), functools.partial(_local, ranks=mesh.size()))
        for of in m.modules():
            for name, p in list(of.named_parameters(recurse=False)):
                part = distribute_tensor(p.data, mesh, [Shard(0)], src_data_rank=None)
                of.register_parameter(name, nn.Parameter(part, requires_grad=p.requires_grad))
        m.forward = functools.partial(_sent if chosen(m) else _exchanged, m, here, mesh.get_group(), path)


def modules(module: nn.Module, paths: Sequence[str]) -> list[nn.Module]:
    """Those of module that hold experts, in layers that may be wrapped."""
    of = {plain(path) for path in paths}
    return [m for path, m in module.named_modules() if plain(path) in of]


def parameters(module: nn.Module, paths: Sequence[str]) -> list[tuple[str, nn.Parameter]]:
    """Those of the experts, with their names."""
    of = {id(p) for m in modules(module, paths) for p in m.parameters()}
    return [(name, p) for name, p in module.named_parameters() if id(p) in of]


def _local(p: torch.Tensor, ranks: int) -> torch.Tensor:
    """This process's part of a parameter. Its gradient, of the samples of so many replicas, is the mean
    over them, as that of the other parameters is."""
    mine = cast(DTensor, p).to_local()
    if mine.requires_grad:
        mine.register_hook(lambda g: g / ranks)
    return mine


def _sent(module: nn.Module, here: Share, group: dist.ProcessGroup, path: str, *args: Any, **kwargs: Any) -> torch.Tensor:
    """forward(rows, experts, weights): every row goes to the experts that are chosen for it."""
    rows, experts, weights = given(module, path, args, kwargs)
    of = experts.reshape(-1)
    order = of.argsort(stable=True)
    counts = torch.bincount(of, minlength=here.experts)
    theirs = torch.empty_like(counts)
    dist.all_to_all_single(theirs, counts, group=group)
    send = counts.view(here.ranks, here.own).sum(1).tolist()
    receive = theirs.view(here.ranks, here.own).sum(1).tolist()
    got = Exchange.apply(rows.reshape(-1, rows.shape[-1])[order // experts.shape[-1]], receive, send, group)
    mine = torch.arange(here.own, device=of.device).repeat(here.ranks).repeat_interleave(theirs)
    back = Exchange.apply(run(module, here, got, mine), send, receive, group)
    made = back[order.argsort()].view(*experts.shape, -1) * weights[..., None]
    return cast(torch.Tensor, made.sum(-2).to(rows.dtype))


def given(module: nn.Module, path: str, args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Rows, the experts of each and their weights, with which a module is called."""
    of = _bound(module, args, kwargs)
    if len(of) != 3 or not all(isinstance(x, torch.Tensor) for x in of) or of[1].shape != of[2].shape:
        raise StrategyError(f"module {path}: it is called with {len(of)} arguments, where its experts are shared out by three: rows [T, width], the experts [T, k] of each and their weights [T, k]")
    return of


def given_block(module: nn.Module, path: str, args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """A block of rows for each expert, with which a module is called."""
    of = _bound(module, args, kwargs)
    if len(of) != 1 or not isinstance(of[0], torch.Tensor) or of[0].dim() != 3:
        raise StrategyError(f"module {path}: it is called with other things than a block of rows for each expert [E, C, width], by which its experts are shared out")
    return of


def _bound(module: nn.Module, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    return list(inspect.signature(type(module).forward).bind(module, *args, **kwargs).arguments.values())[1:]


def run(module: nn.Module, here: Share, rows: torch.Tensor, experts: torch.Tensor) -> torch.Tensor:
    """The result of each of rows, [R, width], by its expert, [R], of the process's own."""
    # With a row that nothing reads, so that every process has gradients to send back, and a gradient
    # of its weights, where it was sent no row.
    rows, experts = torch.cat([rows, rows.new_zeros(1, rows.shape[1])]), torch.cat([experts, experts.new_zeros(1)])
    with _part(module, here):
        made = type(module).forward(module, rows, experts[:, None], torch.ones_like(experts, dtype=rows.dtype)[:, None])
    return cast(torch.Tensor, made[:-1])


def _exchanged(module: nn.Module, here: Share, group: dist.ProcessGroup, path: str, *args: Any, **kwargs: Any) -> torch.Tensor:
    """forward(rows): a block of as many rows for each expert, of every process."""
    (rows,) = given_block(module, path, args, kwargs)
    got = Exchange.apply(rows, None, None, group)
    made = run_block(module, here, together(got, here.ranks))
    return cast(torch.Tensor, Exchange.apply(apart(made, here.ranks), None, None, group))


def together(blocks: torch.Tensor, ranks: int) -> torch.Tensor:
    """[ranks * own, C, width], a block of each process, as [own, ranks * C, width]."""
    return blocks.unflatten(0, (ranks, -1)).transpose(0, 1).flatten(1, 2)


def apart(blocks: torch.Tensor, ranks: int) -> torch.Tensor:
    """The other way round."""
    return blocks.unflatten(1, (ranks, -1)).transpose(0, 1).flatten(0, 1)


def run_block(module: nn.Module, here: Share, rows: torch.Tensor) -> torch.Tensor:
    """The results of rows, [own, C, width], by the process's experts."""
    with _part(module, here):
        return cast(torch.Tensor, type(module).forward(module, rows))


@contextlib.contextmanager
def _part(module: nn.Module, here: Share) -> Iterator[None]:
    """module as if it had the process's experts alone: its parameters, and the numbers that it calls
    its experts."""
    was = [(m, dict(m._parameters), {k: v for k, v in vars(m).items() if "expert" in k and type(v) is int and v == here.experts}) for m in module.modules()]
    for m, own, counts in was:
        m._parameters.update({k: p if p is None else here.take(p) for k, p in own.items()})  # type: ignore[misc]
        vars(m).update(dict.fromkeys(counts, here.own))
    try:
        yield
    finally:
        for m, own, counts in was:
            m._parameters.update(own)
            vars(m).update(counts)


class Exchange(torch.autograd.Function):
    """An all-to-all of rows: `send` of them to each process of a group, in order, `receive` of each; of
    None equal parts. Gradients go the other way."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, receive: list[int] | None, send: list[int] | None, group: dist.ProcessGroup) -> torch.Tensor:
        ctx.of = receive, send, group
        return _exchange(rows, receive, send, group)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        receive, send, group = ctx.of
        return Exchange.apply(grads[0], send, receive, group), None, None, None


def _exchange(rows: torch.Tensor, receive: list[int] | None, send: list[int] | None, group: dist.ProcessGroup) -> torch.Tensor:
    got = rows.new_empty(len(rows) if receive is None else sum(receive), *rows.shape[1:])
    dist.all_to_all_single(got, rows.contiguous(), receive, send, group)
    return got
