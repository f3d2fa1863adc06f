"""python -m placer_torch distribute: steps of a model by a strategy file."""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import sys
import time
import warnings
from typing import Any, Callable, Iterator

import torch
import torch.distributed as dist

from ..clipping import Clip
from ..errors import PlacerTorchError, RunError
from ..where import cause, first_line, where
from . import check, launch, micro
from .distribute import distribute
from .errors import StrategyError, StrategyWarning
from .strategy import Strategy

Made = tuple[Any, Any, Any, Any]

_HANGS = re.compile(r"Timed out (?:waiting )?(?:after )?(\d+) ?ms")  # what gloo says of a process that does not answer
_LEFT = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")  # what gloo says of a process that has ended


def run(make: Callable[[], Made], samples: Callable[[Any], int], s: Strategy, *, steps: int, device: str, clip: Clip, checked: bool) -> dict[str, Any] | None:
    """Runs steps of what make returns (model, loss, batch, optimizer) in this process's part,
    and returns what came of it, on rank 0. samples: of a batch."""
    with _stdout_for_results(), _doubts():
        return _run(make, samples, s, steps, device, clip, checked)


def _run(make: Callable[[], Made], samples: Callable[[Any], int], s: Strategy, steps: int, device: str, clip: Clip, checked: bool) -> dict[str, Any] | None:
    torch.manual_seed(0)  # every process makes the same batch
    model, loss, batch, optimizer = make()
    if loss is None or optimizer is None:
        raise StrategyError("a strategy is of training steps: the function returns no loss or no optimizer")
    batch = micro.repeated(batch, samples(batch), s.batch)
    plain = check.Reference(model, loss, optimizer, clip, _again(make)) if checked else None
    training = distribute(model, loss, optimizer, s, device=device, clip_norm=clip.norm, clip_value=clip.value, norm_type=clip.type)
    try:
        own = micro.part(batch, training.replica, s.groups, s.batch)
        losses, norms, seconds = [], [], []
        for k in range(steps):
            begin = time.perf_counter()
            with _said(k):
                losses.append(training.step(own))  # a number: the device has ended
            seconds.append(time.perf_counter() - begin)
            norms += [training.grad_norm()] if clip.norm is not None else []
        doc: dict[str, Any] = {"strategy": s.strategy, "processes": s.world, "device": training.mesh.device.type, "backend": dist.get_backend(), "samples": s.batch, "steps": steps, "loss": losses}
        doc |= {"grad_norm": norms} if norms else {}
        doc |= {"step_s": statistics.median(seconds[1:] or seconds), "first_step_s": seconds[0], "predicted_step_s": s.predicted.get("step_s")}
        if plain is not None:
            state = training.state_dict()
            if dist.get_rank() == 0:
                changed = plain.changed(batch, training.mesh.device) if s.groups * s.micro_batches > 1 else []
                if changed:
                    print(f"placer_torch: {changed[0]}{f' and {len(changed) - 1} more buffers change' if len(changed) > 1 else ' changes'} in a pass, as statistics of batch norm, which are those of micro-batches, in each replica by itself: compared with plain torch by the same micro-batches", file=sys.stderr)
                want = plain.run_parts(batch, steps, training.mesh.device, s) if changed else plain.run(batch, steps, training.mesh.device)
                each = check.by_tensors(state, want.state)
                doc["difference"] = {"loss": check.of_numbers(losses, want.losses), "state": max(each.values(), key=check.size, default=0.0)}
                doc["difference"] |= {"grad_norm": check.of_numbers(norms, want.norms)} if norms else {}
                doc |= {"largest_difference": max(each, key=lambda k: check.size(each[k]))} if each else {}
        dist.barrier()
        return doc if dist.get_rank() == 0 else None
    finally:
        dist.destroy_process_group()


def _again(make: Callable[[], Made]) -> Callable[[], tuple[Any, Any, Any]]:
    def made() -> tuple[Any, Any, Any]:
        torch.manual_seed(0)
        model, loss, _, optimizer = make()
        return model, loss, optimizer

    return made


@contextlib.contextmanager
def _stdout_for_results() -> Iterator[None]:
    """What is written to stdout meanwhile, by the user's code and by gloo of older torch, goes to
    stderr."""
    sys.stdout.flush()
    was = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(was, 1)
        os.close(was)


@contextlib.contextmanager
def _doubts() -> Iterator[None]:
    """Warnings of strategies as lines of this program."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def line(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, StrategyWarning):
                print(f"placer_torch: {message}", file=sys.stderr)
            else:
                show(message, category, *where, **more)

        warnings.showwarning = line
        yield


@contextlib.contextmanager
def _said(step: int) -> Iterator[None]:
    """An error of the user's code in a step as one line with its place."""
    try:
        yield
    except PlacerTorchError:
        raise
    except Exception as e:
        first = cause(e)
        if any(words in str(first) for words in _LEFT):
            raise RunError(f"step {step + 1}: another process has ended") from e
        hangs = _HANGS.search(str(first))
        if hangs:
            raise RunError(f"step {step + 1}: {launch.SILENT} in {int(hangs[1]) / 1000:g} s: it hangs, or has far more to do") from e
        at = where(first)
        if not at:
            raise
        raise RunError(f"step {step + 1}: {at}: {type(first).__name__}: {first_line(first)}") from e
