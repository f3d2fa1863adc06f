"""Pipelines on processes of this host, beside plain torch."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import tempfile
from typing import Any, Callable, Iterator

# Here, before processes are forked, for each would take seconds to import them.
import torch._dynamo
import torch.distributed as dist
import torch.distributed.fsdp
import torch.distributed.pipelining
import torch.export._trace

from models import Example
from placer_torch.clipping import Clip
from placer_torch.parallel import distribute, micro, optimizers

Strategy = dict[str, Any]


def strategy(schedule: str, stages: list[list[str]], *, micro_batches: int = 4, data: int = 1, sharding: str = "ddp", ranks: int = 0, **more: Any) -> Strategy:
    """A file's content. ranks: of the pipeline, as many as stages without it."""
    ranks = ranks or len(stages)
    return {"format": "placer strategy 1", "graph": "g", "strategy": schedule, "batch": 16, "data": data, "sharding": sharding, "pipeline": ranks, "schedule": schedule, "chunks": len(stages) // ranks, "micro_batches": micro_batches, "stages": stages, **more}


@dataclasses.dataclass
class Got:
    losses: list[float]  # of each step
    state: dict[str, torch.Tensor]
    said: list[dict[str, int]]  # by rank: what it sends in a step, as Pipeline.sent says
    sent: list[dict[str, int]]  # as counted
    norms: list[float]  # of each step's gradients, where they are clipped by them
    reduced: list[dict[str, int]] = dataclasses.field(default_factory=list)  # by rank: calls and bytes of all-reduces in a step


def plain(make: Callable[[], Example], s: Strategy, steps: int = 3, seed: int = 0, clip: Clip = Clip()) -> Got:
    """The same steps by torch in one process: gradients of micro-batches added up. State is
    that which replica 0 has: buffers are of the samples that it has seen."""
    model, loss, batch, optimizer = make()
    torch.manual_seed(seed)
    losses, norms = [], []
    for _ in range(steps):
        optimizers.begin(optimizer)
        total = 0.0
        buffers: dict[str, torch.Tensor] = {}
        for d in range(s["data"]):
            for k in range(s["micro_batches"]):
                value = loss(model, micro.part(micro.part(batch, d, s["data"]), k, s["micro_batches"])) / s["data"] / s["micro_batches"]
                value.backward()
                total += float(value.detach())
            if d == 0:
                buffers = {k: b.clone() for k, b in model.named_buffers()}
        for k, b in model.named_buffers():
            b.copy_(buffers[k])
        norm = clip.eager(model.parameters())
        norms += [float(norm.item())] if norm is not None else []
        optimizers.update(optimizer)
        losses.append(total)
    return Got(losses, model.state_dict(), [], [], norms)


def run(make: Callable[[], Example], s: Strategy, steps: int = 3, seed: int = 0, batches: Iterator[Any] | None = None, resumed: bool = False, clip: Clip = Clip()) -> Got:
    """Raises what rank 0 does. batches: other ones than make's, a step each. resumed: each step
    is another training's, with the state of the one before."""
    world = s["pipeline"] * s["data"] * s.get("tensor", 1)
    context = multiprocessing.get_context("fork")
    ends = [context.Pipe(duplex=False) for _ in range(world)]
    with tempfile.TemporaryDirectory() as folder:
        workers = [context.Process(target=_work, args=(rank, world, os.path.join(folder, "store"), ends[rank][1], make, s, steps, seed, batches, resumed, clip)) for rank in range(world)]
        for w in workers:
            w.start()
        got = [ends[rank][0].recv() for rank in range(world)]
        for w in workers:
            w.join()
    for x in got:
        if isinstance(x, Exception):
            raise x
    losses, state, _, _, norms, _ = got[0]
    assert all((x[0], x[4]) == (losses, norms) for x in got)
    return Got(losses, {k: torch.tensor(v, dtype=dtype).reshape(shape) for k, (v, dtype, shape) in state.items()}, [x[2] for x in got], [x[3] for x in got], norms, [x[5] for x in got])


def _work(rank: int, world: int, store: str, end: Any, make: Callable[[], Example], s: Strategy, steps: int, seed: int, batches: Iterator[Any] | None, resumed: bool, clip: Clip) -> None:
    try:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
        sent, reduced = _count(rank), _count_reduced()
        model, loss, batch, optimizer = make()
        training = distribute(model, loss, optimizer, s, device="cpu", clip_norm=clip.norm, clip_value=clip.value, norm_type=clip.type)
        torch.manual_seed(seed)
        losses, norms = [], []
        for step in range(steps):
            if resumed and step:  # by another, from the state behind the step before, which stays what it was
                saved = training.state_dict(), training.optimizer_state()
                training.step(micro.part(batch, training.replica, s["data"]))
                torch.manual_seed(step)
                model, loss, batch, optimizer = make()
                training = distribute(model, loss, optimizer, s, device="cpu")
                training.load_state_dict(*saved)
            sent.update(calls=0, bytes=0)
            reduced.update(calls=0, bytes=0)
            losses.append(training.step(micro.part(next(batches) if batches else batch, training.replica, s["data"])))
            norms += [training.grad_norm()] if clip.norm is not None else []
        state = training.state_dict()
        end.send((losses, {k: (v.flatten().tolist(), v.dtype, v.shape) for k, v in state.items()}, training.sent, dict(sent), norms, dict(reduced)))
        dist.barrier()
    except Exception as e:
        end.send(e)
    os._exit(0)  # gloo's threads are waited for elsewhere


def _count(rank: int) -> dict[str, int]:
    """Counts what torch's schedules send."""
    sent = {"calls": 0, "bytes": 0}
    made = dist.P2POp.__init__

    def init(self: Any, op: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        if op is dist.isend:
            sent["calls"] += 1
            sent["bytes"] += tensor.nbytes
        made(self, op, tensor, *args, **kwargs)

    dist.P2POp.__init__ = init
    return sent


def _count_reduced() -> dict[str, int]:
    """Counts what is all-reduced."""
    reduced = {"calls": 0, "bytes": 0}
    done = dist.all_reduce

    def all_reduce(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        reduced["calls"] += 1
        reduced["bytes"] += tensor.nbytes
        return done(tensor, *args, **kwargs)

    dist.all_reduce = all_reduce
    return reduced
