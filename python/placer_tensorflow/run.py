"""Runs a schedule: devices and the order, as a chain of control edges per device, written
into the graph, and a session of TensorFlow that runs it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from typing import Any, Iterator, Sequence

import numpy as np

from placer_runtime.errors import NoDeviceError, RunError

from .runtime import tf, v1
from .schedule import Schedule
from .step import Step, source

_PRIORITY = 2  # of a step that others are kept from, before workers of placer_torch


def device_name(name: str) -> str:
    """TensorFlow's name of a device of placer's: cpu:1 is /device:CPU:1."""
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "gpu") or not number.isdigit():
        raise NoDeviceError(f"device {name}: want cpu:N or gpu:N")
    return f"/device:{kind.upper()}:{number}"


def placed(s: Step, x: Schedule) -> Any:
    """The graph with devices, and the order on each device as a chain of control edges.
    A control edge between devices is left out: it keeps a variable's readers before its
    update, and an update of a value that another device still has makes a new one."""
    graph = v1.GraphDef(versions=s.graph.versions, library=s.graph.library)
    graph.node.extend(s.graph.node)
    names = [device_name(d) for d in x.devices]
    last: dict[int, str] = {}
    for i in x.order:
        n, d = graph.node[i], x.device[i]
        n.device = names[d]
        kept = [k for k in n.input if not k.startswith("^") or x.device[s.index[source(k)]] == d]
        del n.input[:]
        n.input.extend(kept)
        if d in last and last[d] not in [source(k) for k in kept]:
            n.input.append("^" + last[d])
        last[d] = n.name
    return graph


@dataclasses.dataclass(frozen=True)
class Span:
    """A node of a traced step: seconds from the step's first. Sends have none."""

    node: str
    device: int
    start: float
    end: float


class Runner:
    """A session that runs steps of one schedule. Each logical device has a thread."""

    def __init__(self, s: Step, x: Schedule, realtime: bool = False):
        self.step, self.schedule, self.realtime = s, x, realtime
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(placed(s, x), name="")
            feeds, assigns, reads = [], [], []
            for k, value in s.values.items():
                with tf.device(device_name(x.devices[x.device[s.index[k]]])):
                    handle = tf.raw_ops.VarHandleOp(dtype=value.dtype, shape=value.shape, shared_name=k, container="")
                    feeds.append(v1.placeholder(value.dtype, value.shape))
                    assigns.append(tf.raw_ops.AssignVariableOp(resource=handle, value=feeds[-1]))
                    reads.append(tf.raw_ops.ReadVariableOp(resource=handle, dtype=value.dtype))
        self._feeds, self._assigns, self._reads = feeds, assigns, reads
        before = _threads()
        self.session = v1.Session(graph=graph, config=_config(x.devices))
        self._fetch = [graph.as_graph_element(s.loss), *[graph.as_graph_element(u) for u in s.updates]]
        try:
            self.reset()
            self._call = self.session.make_callable(self._fetch)
        except tf.errors.OpError as e:
            raise RunError(f"{x.method or 'plan'}: {e.message.splitlines()[0]}") from None
        self._threads = sorted(_threads() - before)
        _pin(self._threads, len(x.devices))

    def reset(self) -> None:
        """Gives the variables the values that they have before the first step."""
        self.session.run(self._assigns, dict(zip(self._feeds, self.step.values.values())))

    def run(self, steps: int) -> list[float]:
        """Wall seconds of each step."""
        took = []
        with self._undisturbed():
            for _ in range(steps):
                t = time.perf_counter()
                self._call()
                took.append(time.perf_counter() - t)
        return took

    @contextlib.contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Runs the session's threads before all other processes, where that is asked for
        and the host permits it."""
        threads = [0, *self._threads] if self.realtime else []
        try:
            for t in threads:
                os.sched_setscheduler(t, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        except (PermissionError, ProcessLookupError):
            self.realtime = False
        try:
            yield
        finally:
            for t in threads if self.realtime else ():
                os.sched_setscheduler(t, os.SCHED_OTHER, os.sched_param(0))

    def results(self, steps: int = 1) -> list[np.ndarray]:
        """Losses of steps from the beginning, and all variables behind them."""
        self.reset()
        return [*(np.asarray(self._call()[0]) for _ in range(steps)), *self.session.run(self._reads)]

    def traced(self) -> list[Span]:
        """The nodes of one step with their times, by TensorFlow's step stats."""
        meta = v1.RunMetadata()
        with self._undisturbed():
            self.session.run(self._fetch, options=v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE), run_metadata=meta)
        number = {device_name(d).rpartition("/")[2].replace("device:", ""): k for k, d in enumerate(self.schedule.devices)}
        spans: list[tuple[str, int, int, int]] = []
        for d in meta.step_stats.dev_stats:
            k = number.get(d.device.rpartition("/")[2].replace("device:", ""))
            if k is None:
                continue
            for n in d.node_stats:
                at = n.all_start_nanos or n.all_start_micros * 1000
                spans.append((n.node_name, k, at + n.op_start_rel_nanos, at + n.op_end_rel_nanos))
        start = min((a for _, _, a, _ in spans), default=0)
        return [Span(name, k, (a - start) / 1e9, (b - start) / 1e9) for name, k, a, b in spans]

    def close(self) -> None:
        self.session.close()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def equal(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> bool:
    """Whether all have the same bits."""
    return len(a) == len(b) and all(x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(a, b))


def _config(devices: Sequence[str]) -> Any:
    cpus = 1 + max([int(d.partition(":")[2]) for d in devices if d.startswith("cpu:")], default=0)
    c = v1.ConfigProto(device_count={"CPU": cpus}, intra_op_parallelism_threads=1, inter_op_parallelism_threads=len(devices), use_per_session_threads=True)
    c.allow_soft_placement = False
    c.graph_options.optimizer_options.opt_level = -1
    c.graph_options.rewrite_options.disable_meta_optimizer = True
    return c


def _threads() -> set[int]:
    try:
        return {int(t) for t in os.listdir("/proc/self/task")}
    except OSError:
        return set()


def _pin(threads: list[int], count: int) -> None:
    """Gives each of the pool's threads a core of its own, where there are enough and
    the threads are told apart."""
    cores = sorted(os.sched_getaffinity(0))
    if len(threads) < count or len(cores) < count:
        return
    for k, t in enumerate(threads):
        os.sched_setaffinity(t, {cores[k % count]})
