"""A pipeline of processes, each with a stage's session, pinned to a core; tensors cross by
shared memory in a ring."""

from __future__ import annotations

import dataclasses
import mmap
import os
import signal
import time
from typing import Any, Sequence

import numpy as np

from placer_runtime import processes
from placer_runtime.errors import NoDeviceError, RunError

from .session import Stage, Values, open_session

RING = 4  # requests between two stages at most


@dataclasses.dataclass
class Pipelined:
    """Seconds a request in the steady state, and the last request's outputs."""

    request_s: float
    outputs: Values


def one_session(path: str, feed: Values, requests: int, core: int) -> Pipelined:
    """Requests one after another in a session on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        s = open_session(path)
        names = [o.name for o in s.get_outputs()]
        s.run(None, feed)
        t = time.perf_counter()
        for _ in range(requests):
            out = s.run(None, feed)
        return Pipelined((time.perf_counter() - t) / requests, dict(zip(names, out)))
    finally:
        os.sched_setaffinity(0, before)


def run(parts: Sequence[Stage], feed: Values, results: Sequence[str], requests: int) -> Pipelined:
    """Sends requests through the stages. results names the model's outputs. A stage's
    process waits for its inputs in shared memory; the time is from the first request's end
    in the last stage to the last's."""
    processes.need_ordered_stores("stages side by side")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < len(parts):
        raise NoDeviceError(f"{len(parts)} stages, this process may use {len(cores)} cores")
    known = dict(feed)
    for p in parts:  # once here, for the sizes of what crosses
        s = open_session(p.path)
        known.update(zip(p.outputs, s.run(list(p.outputs), {k: known[k] for k in p.inputs})))
    crossing = [k for p in parts for k in p.outputs]
    ring = {k: [_shared(known[k]) for _ in range(RING)] for k in crossing}
    done = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("q")  # requests that each stage has ended
    ready = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("q")
    stamp = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")
    reasons = [memoryview(mmap.mmap(-1, mmap.PAGESIZE)) for _ in parts]
    parent, children = os.getpid(), []
    try:
        for n, p in enumerate(parts):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    processes.die_with(parent)
                    signal.signal(signal.SIGINT, signal.SIG_IGN)
                    os.sched_setaffinity(0, {cores[n]})
                    _work(n, p, len(parts), feed, ring, requests, done, ready, stamp)
                    code = 0
                except BaseException as e:
                    reason = ": ".join([type(e).__name__, *str(e).splitlines()[:1]]).encode()[: mmap.PAGESIZE]
                    reasons[n][: len(reason)] = reason
                finally:
                    os._exit(code)
            children.append(pid)
        _wait(children, parts, reasons)
    finally:
        processes.kill(children)
    outputs = {k: np.array(ring[k][(requests - 1) % RING]) for k in results}
    return Pipelined((stamp[1] - stamp[0]) / (requests - 1), outputs)


def _wait(children: list[int], parts: Sequence[Stage], reasons: Sequence[memoryview]) -> None:
    """Returns when all stages have ended, and takes them off children. Raises RunError, with
    its reason, where one fails."""
    stage = dict(zip(list(children), range(len(parts))))
    while children:
        for pid in list(children):
            got, status = os.waitpid(pid, os.WNOHANG)
            if got == 0:
                continue
            children.remove(pid)
            if status:
                n = stage[pid]
                reason = bytes(reasons[n]).rstrip(b"\0").decode(errors="replace")
                if not reason:
                    reason = f"ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"ended with status {os.WEXITSTATUS(status)}"
                raise RunError(f"stage {parts[n].path}: {reason}")
        time.sleep(5e-3)


def _work(n: int, p: Stage, count: int, feed: Values, ring: dict[str, list[np.ndarray]], requests: int, done: Any, ready: Any, stamp: Any) -> None:
    s = open_session(p.path)
    s.run(list(p.outputs), {k: feed[k] if k in feed else ring[k][0] for k in p.inputs})
    ready[n] = 1
    while not all(ready[k] for k in range(count)):
        os.sched_yield()
    for i in range(requests):
        while n and done[n - 1] <= i:
            os.sched_yield()
        out = s.run(list(p.outputs), {k: feed[k] if k in feed else ring[k][i % RING] for k in p.inputs})
        while i - min(done[k] for k in range(n + 1, count)) >= RING if n + 1 < count else False:
            os.sched_yield()  # later stages still read what would be written over
        for k, v in zip(p.outputs, out):
            ring[k][i % RING][...] = v
        done[n] = i + 1
        if n == count - 1 and i in (0, requests - 1):
            stamp[int(i > 0)] = time.perf_counter()


def _shared(like: np.ndarray) -> np.ndarray:
    """A copy in shared memory: a stage's first run, before there are requests, reads it, and
    zeros are no sizes to resize to."""
    copy = np.frombuffer(mmap.mmap(-1, max(1, like.nbytes)), like.dtype, like.size).reshape(like.shape)
    copy[...] = like
    return copy
